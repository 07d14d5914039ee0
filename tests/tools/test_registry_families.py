from pathlib import Path

from tests.tools.registry_sources import interpret
from tools.registry.families import read_families, read_former_architectures
from tools.registry.offload import read_offload_keys

PARSERS = """
    @ToolParserManager.register_module(["hermes", "qwen"])
    class Hermes:
        pass

    @ToolParserManager.register_module(name="mistral")
    class Mistral:
        pass
"""
MODELS = """
    _TEXT_MODELS = {"LlamaForCausalLM": ("llama", "LlamaForCausalLM")}
    _VISION_MODELS = {"Qwen2VL": ("qwen2_vl", "Qwen2VL")}
    _VLLM_MODELS = {**_TEXT_MODELS, **_VISION_MODELS}
    _PREVIOUSLY_SUPPORTED_MODELS = {"PhiSmall": "0.9.2"}
"""
KV = "distributed/kv_transfer/kv_connector"
NAMES = {
    "envs.py": "import os\nenvironment_variables: dict = {'VLLM_A': lambda: os.getenv('VLLM_A'), 'VLLM_B': lambda: 1}\n",
    "config/cache.py": "from typing import Literal\nCacheDType = Literal['auto', 'fp8']\n",
    "config/speculative.py": "from typing import Literal\nMtp = Literal['mtp']\nSpeculativeMethod = Literal['ngram', Mtp]\n",
    "quantization.py": "from typing import Literal\nQuantizationMethods = Literal['awq']\n",
    "tool_parsers/__init__.py": "_TOOL_PARSERS_TO_REGISTER = {'olmo': ('olmo', 'Olmo')}\n",
    "tool_parsers/hermes.py": PARSERS,
    "attention.py": "import enum\nclass AttentionBackendEnum(enum.Enum):\n    FLASH = 'a'\n    CUSTOM = 'a'\n",
    "model_executor/models/registry.py": MODELS,
}


def test_names_of_each_family_are_found_where_they_are_registered(tmp_path: Path) -> None:
    interpreter = interpret(tmp_path, NAMES)
    assert {family: names for family, names in read_families(interpreter).items() if names} == {
        "env": {"VLLM_A", "VLLM_B"},
        "kv_cache_dtype": {"auto", "fp8"},
        "spec_method": {"ngram", "mtp"},
        "quantization": {"awq"},
        "tool_parser": {"hermes", "qwen", "mistral", "olmo"},
        "attention_backend": {"FLASH", "CUSTOM"},
        "architecture": {"LlamaForCausalLM", "Qwen2VL"},
    }
    assert read_former_architectures(interpreter) == {"PhiSmall": "0.9.2"}


OFFLOAD = {
    f"{KV}/factory.py": """
        KVConnectorFactory.register_connector(
            "OffloadingConnector", "vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector", "OffloadingConnector"
        )
        KVConnectorFactory.register_connector(
            name="NixlConnector", module_path="vllm.distributed.kv_transfer.kv_connector.v1.nixl.connector", class_name="N"
        )
        KVConnectorFactory.register_connector(
            "LMCache", "vllm.distributed.kv_transfer.kv_connector.v1.lmcache_connector", "LMCache"
        )
    """,
    f"{KV}/v1/offloading_connector.py": "from vllm.v1.kv_offload.factory import OffloadingSpecFactory\n",
    f"{KV}/v1/nixl/connector.py": "from vllm.distributed.kv_transfer.kv_connector.v1.nixl.worker import Worker\n",
    f"{KV}/v1/nixl/worker.py": "def f(config):\n    return config.get_from_extra_config('backends', [])\nclass Worker: pass\n",
    f"{KV}/v1/lmcache_connector.py": "from lmcache import Engine\n",
    "v1/kv_offload/factory.py": """
        class OffloadingSpecFactory:
            def create(extra_config):
                return extra_config.get("spec_name", "CPUOffloadingSpec")

        OffloadingSpecFactory.register_spec("CPUOffloadingSpec", "vllm.v1.kv_offload.cpu.spec", "CPUOffloadingSpec")
    """,
    "v1/kv_offload/base.py": """
        class OffloadingSpec:
            def __init__(self, config):
                self.extra_config = config.extra_config
                self.prompt_only = self.extra_config.get("offload_prompt_only", True)
    """,
    "v1/kv_offload/cpu/spec.py": """
        from vllm.v1.kv_offload.base import OffloadingSpec

        class CPUOffloadingSpec(OffloadingSpec):
            def __init__(self, config):
                if "eviction_policy" in self.extra_config:
                    self.policy = self.extra_config["eviction_policy"]
                self.other = config.get("not_a_key")
    """,
    "v1/kv_offload/tiering/factory.py": """
        class SecondaryTierFactory:
            def create(tier_config, offloading_spec):
                config = tier_config.copy()
                tier_type = config.pop("type")
                return tier_cls(offloading_spec=offloading_spec, tier_type=tier_type, **config)

        SecondaryTierFactory.register_tier("fs", "vllm.v1.kv_offload.tiering.fs", "FileSystemTier")
    """,
    "v1/kv_offload/tiering/fs.py": """
        class Tier:
            def __init__(self, offloading_spec, tier_type, locality=None):
                pass

        class FileSystemTier(Tier):
            def __init__(self, root_dir, n_read_threads=16, **kwargs):
                super().__init__(**kwargs)
    """,
}


def test_offload_keys_are_those_that_the_code_of_each_thing_reads(tmp_path: Path) -> None:
    assert read_offload_keys(interpret(tmp_path, OFFLOAD)) == {
        "OffloadingConnector": ["spec_name"],
        "NixlConnector": ["backends"],
        "CPUOffloadingSpec": ["eviction_policy", "offload_prompt_only", "spec_name"],
        "fs": ["locality", "n_read_threads", "root_dir", "type"],
    }
