"""What a model is: its layers by kind, weights, rope and context, read from a Hugging Face config. Pure.

May import `errors` and `units` only.
"""
