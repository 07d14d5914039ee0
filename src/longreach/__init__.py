"""longreach: plan, start and prove long-context vLLM deployments on one multi-GPU box.

Rooms import only downward; `docs/README.md` shows the map.
"""
