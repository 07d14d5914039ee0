"""One number for all that a workload sends, and when."""

import hashlib

import orjson

from longreach.measure.workload.values import Workload


def digest_workload(workload: Workload) -> str:
    """SHA-256 over every text in order and what is asked of the server with it."""
    sha = hashlib.sha256()
    for name, text in workload.segments.items():
        sha.update(orjson.dumps([name, text]) + b"\n")
    for request in workload.requests:
        asked = [request.segments, request.tail, request.prompt_tokens, request.output_tokens]
        sha.update(orjson.dumps([*asked, request.session, request.arrival_s]) + b"\n")
    return sha.hexdigest()
