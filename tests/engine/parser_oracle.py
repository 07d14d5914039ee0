"""What the engine's own parser makes of commands given as JSON: runs under the engine's Python and imports vLLM only.

stdin: a list of argv, each from "serve" on; stdout: one answer a command, on the last line: the parsed values, or {"error"}.
With `--verdicts` the values are the model alone.
"""

import contextlib
import io
import json
import sys
from typing import Any

from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser


def parse(parser: FlexibleArgumentParser, argv: list[str]) -> dict[str, Any]:
    """The values of one command; argparse leaves by SystemExit, settings classes by whatever their validators raise."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
            values = parser.parse_args(argv)
    except (SystemExit, Exception) as error:  # noqa: BLE001 - a traceback is a refusal like any other: KeyError, IndexError
        return {"error": complaint.getvalue()[-400:] or f"{type(error).__name__}: {error}"}
    if "--verdicts" in sys.argv:
        return {"model": values.model_tag}
    parsed = dict(vars(values))
    transfer = values.kv_transfer_config
    parsed["offload"] = transfer and [transfer.kv_connector, transfer.kv_role, transfer.kv_connector_extra_config]
    mode = values.compilation_config.cudagraph_mode
    parsed["cudagraph_mode"] = None if mode is None else mode.name
    return parsed


def main() -> None:
    """Build the parser as the `vllm` program does and answer every command."""
    parser = FlexibleArgumentParser(prog="vllm")
    ServeSubcommand().subparser_init(parser.add_subparsers(required=True, dest="subparser"))
    answers = [parse(parser, argv) for argv in json.load(sys.stdin)]
    print(json.dumps(answers, default=str))  # noqa: T201 - the answer to the test


if __name__ == "__main__":
    main()
