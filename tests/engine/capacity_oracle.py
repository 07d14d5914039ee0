"""What the engine says of its KV cache when it is started by given commands: runs under the engine's Python.

stdin: a list of argv, each from "serve" on; stdout: for each command what the engine logged, then one line with "ANSWER"
and its cache_config, or the error that it stopped with. Each engine is started in this process, one after the other
(importing vLLM takes longer than starting a tiny model), with all that `vllm serve` does short of the web server.
"""

import gc
import json
import os
import sys
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # read when vLLM is imported: the engine core lives in this process

from vllm.distributed import cleanup_dist_env_and_memory
from vllm.engine.arg_utils import EngineArgs
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.model_executor.models import ModelRegistry
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.engine.llm_engine import LLMEngine

_REPORTED = ("block_size", "num_gpu_blocks", "kv_cache_size_tokens", "kv_cache_max_concurrency")


def _start(argv: list[str], parser: FlexibleArgumentParser) -> dict[str, Any]:
    """Start one engine and let it go again."""
    arguments = parser.parse_args(argv)
    arguments.model = arguments.model_tag  # as `vllm serve` does with its positional argument
    try:
        engine = LLMEngine.from_engine_args(EngineArgs.from_cli_args(arguments))
    except ValueError as error:
        return {"error": str(error)}
    cache = engine.vllm_config.cache_config
    return {name: getattr(cache, name) for name in _REPORTED}


def main(architectures: list[str]) -> None:
    """Answer every command. The engine inspects an architecture in a new process unless its class is loaded already."""
    for name in architectures:
        ModelRegistry.register_model(name, ModelRegistry.models[name].load_model_cls())
    parser = FlexibleArgumentParser(prog="vllm")
    ServeSubcommand().subparser_init(parser.add_subparsers(required=True, dest="subparser"))
    for argv in json.load(sys.stdin):
        print("ANSWER", json.dumps(_start(argv, parser)), flush=True)  # noqa: T201 - the answer to the test
        gc.collect()
        cleanup_dist_env_and_memory()


if __name__ == "__main__":
    main(sys.argv[1:])
