"""How much fits: the KV cache as vLLM counts it, offload tiers, rope tables, weights. Pure.

May import `model`, `hardware`, `engine`, `wire`, `errors`, `units`.
"""
