"""The steps of `engine.parser`: what vLLM and argparse do to the words of a foreign command, one idea a module. Pure.

May import what `engine` may, and of `engine` the registry, releases and flag values.
"""
