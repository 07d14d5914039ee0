import ast
import re
from importlib.metadata import distributions
from pathlib import Path

from tools.prepare_engine import add_longreach

from longreach._version import __version__
from longreach.rules.offload import CPU_PLUGIN_RELEASE

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "src" / "longreach" / "vllm_ext"


def test_the_engine_finds_the_plugin_as_after_an_installation(tmp_path: Path) -> None:
    (tmp_path / "longreach-0.0.1.dist-info").mkdir()
    add_longreach(tmp_path)
    (found,) = distributions(path=[str(tmp_path)])
    assert (found.name, found.version) == ("longreach", __version__)
    (point,) = found.entry_points.select(group="vllm.general_plugins")
    module, _, function = point.value.partition(":")
    tree = ast.parse((ROOT / "src" / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_no_start_of_python_imports_the_plugin(tmp_path: Path) -> None:
    add_longreach(tmp_path)
    assert [path.read_text(encoding="utf-8").split() for path in tmp_path.glob("*.pth")] == [[str(ROOT / "src")]]


def test_rules_and_plugin_name_the_same_release() -> None:
    text = (ROOM / "refusal.py").read_text(encoding="utf-8")
    supported = re.search(r'^SUPPORTED = "([\d.]+)"', text, re.MULTILINE)
    assert supported is not None
    assert supported[1] == CPU_PLUGIN_RELEASE.rpartition(".")[0]
