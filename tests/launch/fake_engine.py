"""Stands in for `vllm serve` where the mechanics of starting and stopping are tested, not the engine. It prints lines that
vLLM 0.32.0 printed and answers /health and /metrics. FAKE_MODE tells it how to misbehave.
"""

import os
import signal
import socketserver
import subprocess
import sys
import time

PREFIX = "(EngineCore pid={pid}) INFO 11-30 15:06:34 [core.py:1] "
LINES = (
    "Initializing a V1 LLM engine (v0.32.0) with config: model='tiny', dtype=torch.bfloat16, tensor_parallel_size=1",
    "Using max model len 8192",
    "Starting to load model tiny...",
    "Loading weights took 0.01 seconds",
    "Explicitly set (0.02/7.84) GiB for KV cache on node 0.",
    "CPU KV cache size: 10,240 tokens, Maximum concurrency for 8,192 tokens per request: 1.25x",
    "init engine (profile, create kv cache, warmup model) took 0.02 s",
    "Starting vLLM server on http://127.0.0.1:{port}",
)
REFUSAL = """\
(EngineCore pid=1) ERROR 11-30 15:05:04 [core.py:1510] EngineCore failed to start.
(EngineCore pid=1) ERROR 11-30 15:05:04 [core.py:1510] ValueError: To serve at least one request with the model's max seq \
len (16384), (0.03 GiB KV cache is needed, which is larger than the available KV cache memory (0.02 GiB). Based on the \
available memory, the estimated maximum model length is 10112.
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"""
METRICS = (
    'vllm:cache_config_info{block_size="128",cache_dtype="auto",engine="0",kv_cache_max_concurrency="1.25",'
    'kv_cache_size_tokens="10240",num_gpu_blocks="80"} 1.0\n'
    'vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_waiting{engine="0"} 1.0\n'
    'vllm:kv_cache_usage_perc{engine="0"} 0.25\n'
)


class Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        path = self.rfile.readline().split()[1].decode()
        body = METRICS if path == "/metrics" else ""
        self.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


class Server(socketserver.TCPServer):
    allow_reuse_address = True


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    mode = os.environ.get("FAKE_MODE", "")
    port = int(sys.argv[sys.argv.index("--port") + 1])
    if mode in ("stubborn", "silent and stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "with a helper":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    if mode == "shared memory":
        hold_shared_memory(os.environ["FAKE_SEGMENT"])
    if mode == "crash":
        os.abort()
    for line in LINES[:4]:
        say(PREFIX.format(pid=os.getpid()) + line)
    if mode == "refuse":
        say(REFUSAL)
        sys.exit(1)
    if mode.startswith("silent"):
        time.sleep(60)
    while mode == "chatty":
        say("Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<?, ?it/s]")
        time.sleep(0.02)
    with Server(("127.0.0.1", port), Answer) as server:
        for line in LINES[4:]:
            say(PREFIX.format(pid=os.getpid()) + line.format(port=port))
        say("INFO:     Application startup complete.")
        if mode == "die later":
            server.handle_request()
            server.handle_request()
            sys.exit(3)
        server.serve_forever(poll_interval=0.05)


def hold_shared_memory(name: str) -> None:
    import mmap
    from pathlib import Path

    path = Path(name)
    path.write_bytes(bytes(mmap.PAGESIZE))
    with path.open("r+b") as handle:
        globals()["segment"] = mmap.mmap(handle.fileno(), 0)
    say(f"{PREFIX.format(pid=os.getpid())}Created mmap file {path} (0.01 GB)")
    say(REFUSAL)
    time.sleep(0.3)
    os._exit(1)


if __name__ == "__main__":
    main()
