"""What runs inside vLLM's own processes: KV offload on the CPU engine. See `docs/vllm_ext.md`.

The only code that imports vLLM and torch. It imports nothing else of longreach, whose dependencies an engine's environment lacks,
and no other room imports it.
"""
