"""What a server adds to every text: a chat template's tokens, or a BOS. Two small texts tell."""

from itertools import islice

from longreach.measure.prompts import render_question
from longreach.measure.prose import write_paragraphs

_PROBE_PARAGRAPHS = 12  # about 1,200 tokens


def write_probes(salt: str, max_tokens: int) -> tuple[str, str]:
    """A short and a long text that no cache holds. When both have the same tokens added, a template explains them."""
    paragraphs = islice(write_paragraphs(f"probe {salt}"), max(1, min(_PROBE_PARAGRAPHS, max_tokens // 400)))
    short = f"p{salt} is a probe.\n\n{render_question(())}"
    long = f"q{salt} is a probe.\n" + "\n".join(paragraphs) + f"\n\n{render_question(())}"
    return short, long
