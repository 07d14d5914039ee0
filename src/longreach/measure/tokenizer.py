"""Who counts tokens: the model's own tokenizer file, or else the server itself.

Hugging Face `tokenizers` takes 1 to 2 s of CPU for 750,000 tokens, so it runs in a thread. vLLM's `/tokenize` counts
with the served tokenizer and needs no file here; it is slower by an upload and a download of the whole text.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from longreach.errors import InputFileError, LongreachError, ServerError
from longreach.measure.client import Client
from longreach.wire.bodies import parse_token_ids

if TYPE_CHECKING:
    import tokenizers

_BATCH_CHARS = 2_000_000
_CALLS_AT_A_TIME = 8


class Tokenizer(Protocol):
    """Turns plain text into token ids, without the special tokens that a chat template or a BOS setting adds."""

    @property
    def source(self) -> str:
        """Where the counts come from, in words."""

    async def encode(self, text: str) -> list[int]:
        """The token ids of `text`."""

    async def count(self, text: str) -> int:
        """Their number."""

    async def count_many(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each."""


@dataclass(frozen=True, slots=True)
class LocalTokenizer:
    """A `tokenizer.json` on this machine."""

    tokenizer: "tokenizers.Tokenizer"
    source: str

    async def encode(self, text: str) -> list[int]:
        """See Tokenizer."""
        return (await asyncio.to_thread(self._encode_batch, [text]))[0].ids

    async def count(self, text: str) -> int:
        """See Tokenizer."""
        return (await self.count_many([text]))[0]

    async def count_many(self, texts: Sequence[str]) -> list[int]:
        """See Tokenizer."""
        return await asyncio.to_thread(self._count_all, texts)

    def _count_all(self, texts: Sequence[str]) -> list[int]:
        return [len(encoding) for batch in _batches(texts) for encoding in self._encode_batch(batch)]

    def _encode_batch(self, texts: Sequence[str]) -> "list[tokenizers.Encoding]":
        # The batch call without offsets gives the same ids in half the time.
        return self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Pieces of the list that are encoded together: an encoding takes a hundred bytes a token."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size > _BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class ServerTokenizer:
    """The `/tokenize` of the server under test."""

    client: Client
    model: str
    source: str

    async def encode(self, text: str) -> list[int]:
        """See Tokenizer; ServerError when the server has no such path."""
        body = json.dumps({"model": self.model, "prompt": text, "add_special_tokens": False}).encode()
        return list(parse_token_ids((await self.client.fetch("/tokenize", body)).require_ok()))

    async def count(self, text: str) -> int:
        """See Tokenizer."""
        return len(await self.encode(text))

    async def count_many(self, texts: Sequence[str]) -> list[int]:
        """See Tokenizer; equal texts are asked about once."""
        unasked = iter(dict.fromkeys(texts))
        known: dict[str, int] = {}

        async def ask() -> None:
            for text in unasked:
                known[text] = await self.count(text)

        askers = [asyncio.create_task(ask()) for _ in range(_CALLS_AT_A_TIME)]
        try:
            await asyncio.gather(*askers)
        finally:
            for asker in askers:
                asker.cancel()
        return [known[text] for text in texts]


def read_tokenizer(name: str) -> LocalTokenizer:
    """The tokenizer in a folder, a `tokenizer.json` or a hub repository (from the local cache when offline).

    InputFileError when there is none, or when it cannot be read.
    """
    # Imported here: the library takes longer to load than most commands that pass this way need in all.
    from tokenizers import Tokenizer as FastTokenizer

    path = Path(name)
    if path.is_dir():
        path = path / "tokenizer.json"
    elif not path.is_file():
        path = _fetch_from_hub(name)
    if not path.is_file():
        raise _unusable(name, f"there is no file '{path}'")
    try:
        tokenizer = FastTokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for every kind of bad file
        raise _unusable(name, f"'{path}' is not a tokenizer file: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return LocalTokenizer(tokenizer, f"the tokenizer of {name}")


def _fetch_from_hub(name: str) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(hf_hub_download(name, "tokenizer.json"))
    except HFValidationError as error:
        raise _unusable(name, "it is no file, no folder and no hub repository (OWNER/NAME)") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise _unusable(name, f"the hub does not give it: {error}") from error


def _unusable(name: str, why: str) -> InputFileError:
    return InputFileError(f"no tokenizer in '{name}'", why, "--tokenizer FOLDER, where FOLDER holds tokenizer.json")


async def choose_tokenizer(name: str | None, client: Client, model: str, reason: str | None = None) -> Tokenizer:
    """The named tokenizer when it can be had here, else the server's own; InputFileError when there is neither.

    `reason` is why none is named; the source of the counts tells it.
    """
    if name is None:
        missing: LongreachError = _unusable("(none named)", "no tokenizer was named")
    else:
        try:
            return await asyncio.to_thread(read_tokenizer, name)
        except InputFileError as error:
            missing, reason = error, f"there is {error.what}"
    server = ServerTokenizer(client, model, "the server's own /tokenize" + (f", since {reason}" if reason else ""))
    try:
        await server.encode("one two three")
    except ServerError as error:
        raise InputFileError(
            "nothing can count the prompt's tokens", f"{missing.what}: {missing.why}; {error.what}", missing.fix
        ) from error
    return server
