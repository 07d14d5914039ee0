"""What a cold start costs: `longreach --help` and a plan from a local config, as CPU seconds and as a ratio to bare Python.

Ratios in one run are what to compare: machines differ and are noisy. Goals on a quiet core: --help 0.3 s, a plan 0.5 s.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROUNDS = 9
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # as installed
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "num_hidden_layers": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "rope_theta": 1000000,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


def measure(argv: list[str]) -> tuple[float, float]:
    """(wall, CPU) seconds of one run."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(CONFIG), encoding="utf-8")
        longreach = [sys.executable, "-m", "longreach"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "longreach --help": [*longreach, "--help"],
            "longreach plan config.json": [*longreach, "plan", str(config), "--gpus", "4xRTX4090", "--json"],
            "longreach plan qwen3.6-27b": [
                *longreach,
                "plan",
                "qwen3.6-27b",
                "--gpus",
                "4xRTX4090",
                "--max-model-len",
                "750k",
                "--json",
            ],
        }
        for argv in commands.values():
            measure(argv)  # bytecode and page cache
        results = {name: [measure(argv) for _ in range(ROUNDS)] for name, argv in commands.items()}
    base = median(cpu for _, cpu in results["python -c pass"])
    print(f"{'command':<30} {'wall s':>8} {'CPU s':>8} {'x bare Python':>14}   (median of {ROUNDS})")
    for name, runs in results.items():
        wall, cpu = median(run[0] for run in runs), median(run[1] for run in runs)
        print(f"{name:<30} {wall:>8.3f} {cpu:>8.3f} {cpu / base:>14.1f}")


if __name__ == "__main__":
    main()
