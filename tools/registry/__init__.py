"""Read what each vLLM release accepts out of its published source: `python -m tools.registry VERSION...`, see docs/registry.md.

Nothing of vLLM is imported or run: the source is parsed and its parser-building functions are followed symbolically.
"""
