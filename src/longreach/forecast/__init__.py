"""How fast: bounds and ranges for prefill, decode and reload. Pure.

May import `sizing` and the rooms below it.
"""
