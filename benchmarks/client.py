"""What the client itself costs: CPU microseconds per streamed token, when tokens come one by one and when they come in heaps.

    python benchmarks/client.py [ROUNDS]

The server runs in a process of its own and sends what vLLM sends: one HTTP chunk and one `data:` event a token. Counted is
the CPU time of this process, from the request to the parsed and recorded result. Beside it a bare aiohttp loop that
throws away what it reads: what is above that is ours. Goals: 65 us at a trickle of one token a millisecond, 8 us in bursts.
"""

import io
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import aiohttp

from longreach.measure import event_loop
from longreach.measure.client import Client, open_client
from longreach.measure.endpoint import Endpoint
from longreach.measure.loop_lag import LoopLagMeter

TRICKLE_TOKENS, BURST_TOKENS = 3_000, 60_000
GOALS_US = {"trickle": 65.0, "burst": 8.0}
PATHS = {"trickle": "/trickle", "burst": "/burst"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"


def render_events(num_tokens: int) -> Iterator[bytes]:
    """The stream as vLLM words it, each event an HTTP chunk."""
    shared = {"id": "chatcmpl-8f2c61d0a7b94e35b1c2", "object": "chat.completion.chunk", "created": 1_760_000_000}
    shared["model"] = "Qwen/Qwen3-30B-A3B-Instruct-2507"
    for place in range(num_tokens):
        end = "length" if place == num_tokens - 1 else None
        choice = {"index": 0, "delta": {"content": f" word{place % 97}"}, "logprobs": None, "finish_reason": end}
        yield _frame(json.dumps({**shared, "choices": [{**choice, "token_ids": None}]}, separators=(",", ":")))
    usage = {"prompt_tokens": 9, "total_tokens": 9 + num_tokens, "completion_tokens": num_tokens}
    yield _frame(json.dumps({**shared, "choices": [], "usage": usage}, separators=(",", ":")))
    yield _frame("[DONE]") + b"0\r\n\r\n"


def _frame(text: str) -> bytes:
    event = f"data: {text}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def serve() -> None:
    """Answer requests one after the other until the process is ended; its port goes to standard output."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        trickle, burst = list(render_events(TRICKLE_TOKENS)), b"".join(render_events(BURST_TOKENS))
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while asked := connection.recv(65_536):
                    connection.sendall(HEAD)
                    if PATHS["burst"].encode() in asked:
                        connection.sendall(burst)
                        continue
                    for event in trickle:
                        time.sleep(0.001)
                        connection.sendall(event)


async def read_bare(url: str) -> None:
    """Read an answer and throw it away."""
    async with aiohttp.ClientSession() as session, session.post(url, data=io.BytesIO(b"{}")) as response:
        async for _ in response.content.iter_any():
            pass


async def read_ours(client: Client, path: str, num_tokens: int) -> None:
    """Read an answer as every measurement does."""
    async with LoopLagMeter() as lag:
        result = await client.stream(path, b"{}", lag=lag)
    assert result.failure is None, result.failure
    assert result.num_chunks == num_tokens


async def measure(url: str, kind: str, num_tokens: int, rounds: int) -> tuple[float, float]:
    """CPU microseconds a token, ours and bare: the least of the rounds, which alternate."""
    ours, bare = [], []
    async with open_client(Endpoint(url)) as client:
        for _ in range(rounds):
            began = time.process_time()
            await read_ours(client, PATHS[kind], num_tokens)
            ours.append(time.process_time() - began)
            began = time.process_time()
            await read_bare(url + PATHS[kind])
            bare.append(time.process_time() - began)
    return min(ours) / num_tokens * 1e6, min(bare) / num_tokens * 1e6


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        print(f"{'CPU us a token':<16}{'ours':>7}{'goal':>7}{'bare loop':>11}{'ratio':>7}")
        for kind, num_tokens in (("trickle", TRICKLE_TOKENS), ("burst", BURST_TOKENS)):
            ours, bare = event_loop.run(measure(url, kind, num_tokens, rounds))
            print(f"{kind:<16}{ours:>7.1f}{GOALS_US[kind]:>7.1f}{bare:>11.1f}{ours / bare:>7.2f}")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
