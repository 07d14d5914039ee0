"""OpenAI messages and event streams as values. Pure.

May import `errors` and `units` only.
"""
