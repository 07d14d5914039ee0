"""Who counts tokens: the model's own tokenizer file, or else the server itself.

Hugging Face `tokenizers` takes 1 to 2 s of CPU for 750,000 tokens, so it runs in a thread. vLLM's `/tokenize` counts
with the served tokenizer and needs no file here; it is slower by an upload and a download of the whole text.
"""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from longreach.errors import InputFileError, LongreachError, ServerError
from longreach.measure.client import Client
from longreach.wire.bodies import parse_token_ids

if TYPE_CHECKING:
    import tokenizers


class Tokenizer(Protocol):
    """Turns plain text into token ids, without the special tokens that a chat template or a BOS setting adds."""

    @property
    def source(self) -> str:
        """Where the counts come from, in words."""

    async def encode(self, text: str) -> list[int]:
        """The token ids of `text`."""

    async def count(self, text: str) -> int:
        """Their number."""


@dataclass(frozen=True, slots=True)
class LocalTokenizer:
    """A `tokenizer.json` on this machine."""

    tokenizer: "tokenizers.Tokenizer"
    source: str

    async def encode(self, text: str) -> list[int]:
        """See Tokenizer."""
        return (await self._encode(text)).ids

    async def count(self, text: str) -> int:
        """See Tokenizer."""
        return len(await self._encode(text))

    async def _encode(self, text: str) -> "tokenizers.Encoding":
        # The batch call without offsets gives the same ids in half the time.
        return (await asyncio.to_thread(self.tokenizer.encode_batch_fast, [text], add_special_tokens=False))[0]


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
