"""Start vLLM as planned, follow its log, compare what it says with the plan, stop it.

May import `host` and the rooms below it.
"""
