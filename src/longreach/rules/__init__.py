"""Facts about a deployment to findings with what, why, fix and a stable code. Pure.

May import `forecast` and the rooms below it.
"""
