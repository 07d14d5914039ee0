"""What a model is: its layers by kind, weights, rope and context, read from a Hugging Face config.

Pure but for `source`, `checkpoint` and `hub`, which read files and the Hub, and `catalogue`, which reads package data.
May import `errors` and `units` only.
"""
