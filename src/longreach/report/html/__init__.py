"""A benchmark as one self-contained page: no network, no script, a text alternative for every plot. Pure.

May import every room below `cli`. matplotlib is imported inside the functions that draw.
"""
