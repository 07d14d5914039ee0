"""Talk to a running server: exact prompts, honest timing, proofs. Async lives here.

May import `launch` and the rooms below it.
"""
