"""Where `vllm serve` commands stand: shell scripts, docker run, compose, systemd, Kubernetes. Text in, values out. Pure.

May import `engine.options`, `errors` and `units`, and PyYAML inside the function that needs it.
"""
