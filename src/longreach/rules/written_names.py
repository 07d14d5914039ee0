"""Names that vLLM looks up after parsing, against what the release knows: LR930 to LR936. Pure."""

from collections.abc import Iterator, Mapping

from longreach.engine.flag_values import write_value
from longreach.engine.parsing.parsed import is_open
from longreach.engine.parsing.similar import nearest
from longreach.engine.registry import REGISTRY_VERSIONS, Family, releases_with_name
from longreach.rules.edit import Edit, set_flag
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand, span_text
from longreach.units import nearest_name

_V0_CONNECTORS = frozenset(("LMCacheConnector", "MooncakeConnector", "MooncakeStoreConnector", "PyNcclConnector"))


def _unknown(written: WrittenCommand, family: Family, name: str, place: str) -> tuple[str, str] | None:
    """Why a name is not known, and its nearest known one or "". None: the release knows it."""
    known = written.registry.names(family)
    if not known or is_open(name) or name in known:
        return None
    releases = releases_with_name(family, name)
    version = written.release.version
    if releases:
        why = f"vLLM has it {span_text(releases, REGISTRY_VERSIONS[-1])}; {version} knows {len(known)} others"
        return why, f"{name}V1" if f"{name}V1" in known else ""
    why = f"it is none of the {len(known)} names that vLLM {version} takes for {place}"
    return why, nearest_name(name, sorted(known)) or ""


def _diagnose(written: WrittenCommand, flag: str, family: Family, name: str | None) -> Iterator[Diagnosis]:
    """The diagnosis of a flag whose value is a name, unless the parser itself refuses unknown ones."""
    entry = written.registry.flags.get(flag)
    if name is None or entry is None or entry.choices:
        return
    said = _unknown(written, family, name, flag)
    if said is None:
        return
    why, better = said
    fix = f"{flag} {better}" if better else _other_release(written, family, name, flag)
    yield Diagnosis(
        f"{flag} {name!r} is not known to vLLM {written.release.version}",
        why,
        fix,
        edit=set_flag(flag, better) if better else None,
    )


def _other_release(written: WrittenCommand, family: Family, name: str, flag: str) -> str:
    releases = releases_with_name(family, name)
    if releases:
        newer = releases[0] if releases[0] in _after(written.release.version) else releases[-1]
        return f"vLLM {newer}, or another name for {flag}"
    near = nearest(name, sorted(written.registry.names(family)))
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"take {flag} out" + (": a quantized checkpoint names its own method" if family == "quantization" else "")


def _after(version: str) -> tuple[str, ...]:
    index = REGISTRY_VERSIONS.index(version)
    return REGISTRY_VERSIONS[index + 1 :]


@rule(
    "LR930",
    "error",
    "unknown_reasoning_parser",
    "the release has no reasoning parser of this name",
    outcome="refused_at_start",
)
def unknown_reasoning_parser(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A plug-in may bring more names."""
    if written.parsed.value("--reasoning-parser-plugin") is None:
        yield from _diagnose(written, "--reasoning-parser", "reasoning_parser", written.value("--reasoning-parser"))


@rule(
    "LR931", "error", "unknown_tool_parser", "the release has no tool parser of this name", outcome="refused_at_start"
)
def unknown_tool_parser(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The name is looked up only with --enable-auto-tool-choice; a plug-in may bring more names."""
    if written.parsed.value("--tool-parser-plugin") is not None or not written.parsed.is_on(
        "--enable-auto-tool-choice"
    ):
        return
    yield from _diagnose(written, "--tool-call-parser", "tool_parser", written.value("--tool-call-parser"))


@rule("LR932", "error", "unknown_attention_backend", "the release has no attention backend of this name")
def unknown_attention_backend(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The name's case does not matter."""
    name = written.value("--attention-backend")
    yield from _diagnose(
        written, "--attention-backend", "attention_backend", None if name in (None, "auto") else str(name).upper()
    )


@rule("LR933", "error", "unknown_connector", "the release has no KV connector of this name", outcome="refused_at_start")
def unknown_connector(written: WrittenCommand) -> Iterator[Diagnosis]:
    """`kv_connector_module_path` names a connector of one's own."""
    transfer, name = written.transfer, written.connector
    if transfer is None or name is None or transfer.get("kv_connector_module_path"):
        return
    said = _unknown(written, "connector", name, "kv_connector")
    if said is None:
        return
    why, better = said
    fix = f'"kv_connector": "{better}"' if better else _other_release(written, "connector", name, "kv_connector")
    yield Diagnosis(
        f"kv_connector {name!r} is not known to vLLM {written.release.version}",
        why,
        fix,
        edit=replace_key(written, {"kv_connector": better}) if better else None,
    )


@rule(
    "LR934",
    "warning",
    "quantization_not_in_release",
    "the release has no quantization method of this name",
    outcome="refused_at_start",
)
def quantization_not_in_release(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A warning: an AutoRound checkpoint replaces whatever name is given, and plug-ins bring names of their own."""
    yield from _diagnose(written, "--quantization", "quantization", written.value("--quantization"))


@rule(
    "LR935",
    "error",
    "connector_name_wrong_engine",
    "the connector belongs to the engine before V1",
    last="0.10.0",
    outcome="refused_at_start",
)
def connector_of_old_engine(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Up to 0.10 both engines' connectors are registered; V1, the default from 0.8, loads only its own."""
    name = written.connector
    if name is None or written.variable("VLLM_USE_V1") == "0":
        return
    if name not in _V0_CONNECTORS:
        return
    has_own = f"{name}V1" in written.registry.names("connector")
    better = f"{name}V1" if has_own else None
    yield Diagnosis(
        f"kv_connector {name!r} is a connector of the engine before V1",
        f"the V1 engine is the default of {written.release.version} and loads only its own connectors",
        f'"kv_connector": "{better}"' if better else "VLLM_USE_V1=0, or another connector",
        edit=replace_key(written, {"kv_connector": better}) if better else Edit(set_env=(("VLLM_USE_V1", "0"),)),
    )


def replace_key(written: WrittenCommand, changes: Mapping[str, object]) -> Edit:
    """The edit that changes keys of `--kv-transfer-config`; None takes a key out."""
    merged = {**(written.transfer or {}), **changes}
    return set_flag(
        "--kv-transfer-config", write_value({key: item for key, item in merged.items() if item is not None})
    )


RULES: tuple[CommandRule, ...] = (
    unknown_reasoning_parser,
    unknown_tool_parser,
    unknown_attention_backend,
    unknown_connector,
    quantization_not_in_release,
    connector_of_old_engine,
)
