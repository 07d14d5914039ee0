"""Which connector keeps the hybrid KV cache manager, and when."""

import json

import pytest
from tests.rules.commands import written

from longreach.rules.connectors import connector_of, hybrid_manager_is_off

KEEP, OFF = "--no-disable-hybrid-kv-cache-manager", "--disable-hybrid-kv-cache-manager"


def with_connector(name: str, version: str, more: str = "") -> str:
    return f"m --kv-transfer-config '{json.dumps({'kv_connector': name, 'kv_role': 'kv_both'})}' {more}"


@pytest.mark.parametrize(
    ("connector", "version", "more", "is_off"),
    [
        ("OffloadingConnector", "0.17.1", "", True),
        ("OffloadingConnector", "0.21.0", "", True),
        ("OffloadingConnector", "0.21.0", KEEP, False),
        ("OffloadingConnector", "0.22.1", "", False),
        ("OffloadingConnector", "0.32.0", OFF, True),
        ("LMCacheConnectorV1", "0.32.0", "", True),
        ("LMCacheMPConnector", "0.32.0", "", None),
        ("MyConnector", "0.32.0", "", None),
    ],
)
def test_manager_goes_with_the_connector_and_the_release(
    connector: str, version: str, more: str, *, is_off: bool | None
) -> None:
    assert hybrid_manager_is_off(written(with_connector(connector, version, more), version)) is is_off


@pytest.mark.parametrize(
    ("line", "connector"),
    [
        ("m", None),
        ("m --kv-offloading-size 8", "OffloadingConnector"),
        ("m --kv-offloading-size 8 --kv-offloading-backend lmcache", "LMCacheConnectorV1"),
        ("VLLM_USE_SIMPLE_KV_OFFLOAD=1 vllm serve m --kv-offloading-size 8", "SimpleCPUOffloadConnector"),
    ],
)
def test_offloading_size_names_a_connector(line: str, connector: str | None) -> None:
    assert connector_of(written(line)) == connector
