"""What vLLM is: releases, flags, the command, log lines, metric names. Pure; never imports vLLM.

May import `errors` and `units` only.
"""
