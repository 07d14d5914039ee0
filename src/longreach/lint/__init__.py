"""A foreign `vllm serve` command: what each release makes of it, and the command that works.

Pure. Imports `plan` and the rooms below; `host` and above import it.
"""
