"""Texts whose commands are not what was meant, and near ones that are."""

from tests.rules.case import Case

from longreach.engine.launchfiles.recognise import find_commands
from longreach.engine.options import ServeCommand
from longreach.engine.release import get_release
from longreach.lint.check import Surroundings, read_written
from longreach.rules import written_text
from longreach.rules.written import WrittenCommand

_RULES = {rule.kind.code: rule for rule in written_text.RULES}


def _in(text: str) -> WrittenCommand:
    """The first command of a text."""
    found = find_commands(text)[0]
    return read_written(ServeCommand(found.argv, found.env), get_release("0.32.0"), Surroundings(found=found))


def _case(code: str, fires: str, *silent: str) -> Case[WrittenCommand]:
    return Case(_RULES[code], _in(fires), tuple(_in(text) for text in silent))


CASES: tuple[Case[WrittenCommand], ...] = (
    _case(
        "LR920",
        "docker run vllm/vllm-openai:v0.32.0 serve org/m",
        "docker run vllm/vllm-openai:v0.32.0 org/m",
        "docker run --entrypoint vllm vllm/vllm-openai:v0.32.0 serve org/m",
        "docker run rocm/vllm vllm serve org/m",
    ),
    _case("LR921", "docker run my/vllm serve org/m --max-model-len 8k", "docker run my/vllm org/m --max-model-len 8k"),
    _case(
        "LR922",
        "image: my/server\ncommand: ['vllm serve org/m --port 80']",
        "image: my/server\ncommand: [vllm, serve, org/m, --port, '80']",
        "image: my/server\nentrypoint: [sh, -c]\ncommand: ['vllm serve org/m --port 80']",
    ),
    _case(
        "LR923",
        "command: >\n  vllm serve org/m \\\n  --port 80",
        "command: >\n  vllm serve org/m\n  --port 80",
        "command:\n  - sh\n  - -c\n  - |\n    vllm serve org/m \\\n    --port 80",
    ),
    _case(
        "LR924",
        "vllm serve org/m \\\n  # --port 80 \\\n  --dtype auto",
        "vllm serve org/m \\\n  --dtype auto # --port 80",
        "vllm serve org/m \\\n  --dtype auto \\\n  # --port 80",
    ),
    _case(
        "LR925",
        "vllm serve org/m\n  --port 80",
        "vllm serve org/m \\\n  --port 80",
        "vllm serve org/m --json '{\n  \"--port\": 80}'",
    ),
    _case("LR926", "vllm serve org/m \\ \n  --port 80", "vllm serve org/m \\\n  --port 80 "),
    _case(
        "LR927",
        """bash -c "vllm serve org/m -cc '{"mode": 3}'\"""",
        """bash -c "vllm serve org/m -cc '{\\"mode\\": 3}'\"""",
        """vllm serve org/m -cc '{"mode": 3}'""",
    ),
    _case("LR928", 'vllm serve org/m -cc \'{"mode": 3}', "vllm serve org/m -cc '{\"mode\": 3}'"),
    _case("LR929", "vllm serve org/m \u2013port 80", "vllm serve org/m --port 80 --served-model-name a\u2013b"),
)
