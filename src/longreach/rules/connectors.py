"""Which KV connectors keep the hybrid KV cache manager, release by release. Pure.

Read in the sources of 29 releases: classes that subclass `SupportsHMA`. Up to 0.21 every connector turns the manager off unless
`--no-disable-hybrid-kv-cache-manager` keeps it (from 0.13 on); from 0.22 on vLLM asks the class.
"""

from longreach.rules.written import WrittenCommand

_KEEPS_MANAGER_SINCE = {
    "NixlConnector": (0, 18, 1),
    "SimpleCPUOffloadConnector": (0, 19, 1),
    "MooncakeConnector": (0, 20, 2),
    "OffloadingConnector": (0, 21),
    "DecodeBenchConnector": (0, 21),
    "MooncakeStoreConnector": (0, 22, 1),
    "ExampleHiddenStatesConnector": (0, 22, 1),
    "MoRIIOConnector": (0, 30),
    "HiSparseConnector": (0, 30),
    "UMBPStoreConnector": (0, 33),
}
_NEVER = (
    "LMCacheConnectorV1",
    "FlexKVConnectorV1",
    "HF3FSKVConnector",
    "P2pNcclConnector",
    "SharedStorageConnector",
    "ExampleConnector",
)
_ASKS_THE_CLASS_SINCE = (0, 22)
_FLAG_KEEPS_SINCE = (0, 13)  # before, a connector turns the manager off whatever the flag says


def connector_of(written: WrittenCommand) -> str | None:
    """The connector by name, also where `--kv-offloading-size` asks for it; None: none, or not known."""
    if written.connector is not None:
        return written.connector
    if written.value("--kv-offloading-size") is None:
        return None
    if (written.value("--kv-offloading-backend") or "native") != "native":
        return "LMCacheConnectorV1"
    simple = written.variable("VLLM_USE_SIMPLE_KV_OFFLOAD") in ("1", "true")
    return "SimpleCPUOffloadConnector" if simple else "OffloadingConnector"


def keeps_hybrid_manager(connector: str, written: WrittenCommand) -> bool | None:
    """Whether the connector works with several kinds of layers in this release; None: not known (a plug-in, several at once)."""
    since = _KEEPS_MANAGER_SINCE.get(connector)
    if since is not None:
        return written.release.number >= since
    return False if connector in _NEVER else None


def hybrid_manager_is_off(written: WrittenCommand) -> bool | None:
    """Whether layers of different kinds are forced into one group; None: not known."""
    asked = written.parsed.is_on("--disable-hybrid-kv-cache-manager")
    if asked:
        return True
    connector = connector_of(written)
    if connector is None:
        return False
    number = written.release.number
    if number < _ASKS_THE_CLASS_SINCE:
        return asked is None or number < _FLAG_KEEPS_SINCE
    keeps = keeps_hybrid_manager(connector, written)
    return None if keeps is None else not keeps and asked is None
