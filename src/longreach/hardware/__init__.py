"""What the machine is: GPUs, links between them, memory. A catalogue and the values made from it. Pure.

May import `errors` and `units` only.
"""
