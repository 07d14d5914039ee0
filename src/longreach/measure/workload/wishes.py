"""What a workload may be made of: the wishes, as data."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SyntheticSource:
    """Generated prompts. `input_tokens` is what the server counts, template included.

    `rounds`: every prompt comes so often, in cyclic order; it is the same but for its last line, so that all that was kept of it
    is used again. The prompts are dealt out over `num_prefixes` shared prefixes.
    """

    num_requests: int  # in each round
    input_tokens: int
    output_tokens: int
    shared_prefix_tokens: int = 0
    num_prefixes: int = 1
    input_spread: float = 0.0  # lengths are drawn evenly from input_tokens x (1 - spread .. 1 + spread)
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class TextSource:
    """The user's own text, a file or every text file of a folder.

    With `input_tokens` prompts of that length are cut from it at different places. Without, every file is one prompt as it is.
    """

    path: Path
    output_tokens: int
    input_tokens: int | None = None
    num_requests: int | None = None  # None: as many as there are without cutting any passage twice
    max_request_tokens: int | None = None  # of whole files, with their answer: longer ones are left out


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A request trace in the Mooncake format: JSON lines with timestamp (ms), input_length, output_length and hash_ids."""

    path: Path
    num_requests: int | None = None  # the first so many of what the other fields leave
    sessions: Fraction = Fraction(1)  # share of the sessions that is kept, each of them whole
    time_scale: float = 1.0  # 2 stretches the clock to twice the length
    max_output_tokens: int | None = None  # longer answers are cut to it
    max_request_tokens: int | None = None  # input and output: what the server can hold; longer requests are left out


@dataclass(frozen=True, slots=True)
class ConversationSource:
    """Conversations that grow, as agents' do: every turn is the turn before, without its last line, and a new passage."""

    num_sessions: int
    turns: int
    first_tokens: int  # of the first turn's prompt
    turn_tokens: int  # that every further turn adds
    output_tokens: int


@dataclass(frozen=True, slots=True)
class WorkloadWish:
    """A source and the seed of all that is drawn. The same wish and tokenizer give the same workload, anywhere.

    `nonce` changes the first word of every prompt and nothing else: no server has seen them then.
    """

    source: SyntheticSource | TextSource | TraceSource | ConversationSource
    seed: str = "longreach"
    nonce: str = ""
    notes: tuple[str, ...] = ()  # why it is as it is, where nobody said
