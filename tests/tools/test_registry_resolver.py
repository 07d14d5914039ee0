import dataclasses
from pathlib import Path
from typing import Literal, get_origin

from tests.tools.registry_sources import interpret
from tools.registry.annotations import names_in, settings_class
from tools.registry.values import Unknown

IMPORTS = {
    "config/__init__.py": "from vllm.config.cache import *\nfrom .model import Model as Renamed\n",
    "config/cache.py": "LIMIT = 3\n",
    "config/model.py": "from ..base import ROOT\nclass Model:\n    root = ROOT\n",
    "base.py": "ROOT = 'r'\n",
    "lazy.py": "TABLE = {'LIMIT': 'vllm.config.cache'}\ndef __getattr__(name):\n    return TABLE[name]\n",
    "uses.py": "import vllm.base\nimport vllm.config as settings\nseen = (vllm.base.ROOT, settings.LIMIT)\n",
    "types.py": "from torch import dtype\n",
}


def test_names_are_followed_through_every_form_of_import(tmp_path: Path) -> None:
    value = interpret(tmp_path, IMPORTS).import_value
    assert value("vllm.config.LIMIT") == 3
    assert value("vllm.config.Renamed").__name__ == "Model"
    assert value("vllm.uses.seen") == ("r", 3)
    assert value("vllm.types.dtype") == Unknown("torch.dtype")
    assert value("vllm.lazy.LIMIT") == 3
    assert value("vllm.lazy.Nowhere") == Unknown("Nowhere")


def test_later_binding_counts_and_the_tried_one_before_its_fallback(tmp_path: Path) -> None:
    source = "A = 1\nA = 2\ntry:\n    B = 1\nexcept ImportError:\n    B = 2\nif unseen:\n    C = 1\nelse:\n    C = 2\n"
    value = interpret(tmp_path, {"m.py": source}).import_value
    assert [value(f"vllm.m.{name}") for name in "ABC"] == [2, 1, 1]


def test_type_checking_branch_counts_only_for_a_type_checker(tmp_path: Path) -> None:
    source = "from typing import TYPE_CHECKING, Literal\nif TYPE_CHECKING:\n    T = Literal['a']\nelse:\n    T = str\n"
    assert interpret(tmp_path, {"m.py": source}).import_value("vllm.m.T") is str
    assert interpret(tmp_path, {"m.py": source}, typed=True).import_value("vllm.m.T") == Literal["a"]


SETTINGS = '''
    import enum
    from dataclasses import InitVar, dataclass, field
    from typing import ClassVar, Literal, Optional
    from pydantic import Field
    from torch import dtype

    Method = Literal["ngram", Literal["mtp"]]

    class Mode(enum.Enum):
        FULL = 1
        NONE = "none"

    @dataclass
    class Base:
        version: ClassVar[int] = 1
        first: int = Field(default=3, ge=0)
        second: Optional[str] = None
        """What second is."""

    @config
    @dataclass(config=dict(extra="forbid"))
    class Child(Base):
        first: float = 0.5
        rows: list[int] = field(default_factory=list)
        mode: "Optional[Mode]" = Mode.FULL
        method: Method | None = None
        inner: Base = Field(default_factory=Base)
        raw: dtype | None = None
        told: InitVar[int] = 0
'''


def test_fields_come_in_order_with_those_of_the_bases_first(tmp_path: Path) -> None:
    interpreter = interpret(tmp_path, {"m.py": SETTINGS})
    child = interpreter.import_value("vllm.m.Child")
    fields = {field.name: field for field in interpreter.fields(child)}
    assert list(fields) == ["first", "second", "rows", "mode", "method", "inner", "raw"]
    assert (fields["first"].type, fields["first"].default) == (float, 0.5)
    assert fields["second"].document == "What second is."
    assert interpreter.call(fields["rows"].default_factory) == []
    assert fields["inner"].default is dataclasses.MISSING
    assert [field.name for field in interpreter.keys(child)][-1] == "told"
    assert interpreter.is_dataclass(child)
    assert not interpreter.is_dataclass(interpreter.import_value("vllm.m.Mode"))


def test_annotations_tell_names_and_the_class_inside(tmp_path: Path) -> None:
    interpreter = interpret(tmp_path, {"m.py": SETTINGS})
    types = {field.name: field.type for field in interpreter.keys(interpreter.import_value("vllm.m.Child"))}
    assert names_in(types["mode"]) == ["FULL", "NONE"]
    assert names_in(types["method"]) == ["mtp", "ngram"]
    assert settings_class(types["inner"] | None) is types["inner"]
    assert get_origin(types["rows"]) is list


def test_attributes_of_a_class_are_its_defaults_and_members(tmp_path: Path) -> None:
    uses = "from vllm.m import Child, Mode\nvalues = (Child.first, Child.second, Mode.NONE.value, Child.rows, Child.nothing)\n"
    value = interpret(tmp_path, {"m.py": SETTINGS, "uses.py": uses}).import_value("vllm.uses.values")
    assert value[:3] == (0.5, None, "none")
    assert all(isinstance(one, Unknown) for one in value[3:])
