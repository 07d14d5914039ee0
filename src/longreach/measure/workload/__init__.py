"""What is sent: prompts of exact length from a generator, text files, a request trace or a growing conversation."""
