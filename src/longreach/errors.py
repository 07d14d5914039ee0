"""Every error a user can meet: what happened, why, and what to paste next.

LongreachError                  exit 1
├── UsageError                  exit 2: the request itself is malformed (option value, unknown name)
├── InputFileError              exit 1: a file or folder we were given cannot be read or understood
├── UnknownModelError           exit 1: a model configuration whose KV cache we do not understand
├── EngineError                 exit 1: the engine is missing, refused to start, died, or answered wrongly
└── ServerError                 exit 1: an HTTP server could not be reached or did not answer as promised
"""

from typing import ClassVar


class LongreachError(Exception):
    """An error with advice. `what` is one lower-case line that names the value; `fix` is something to paste."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, why: str, fix: str, cause: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.cause = cause  # a stable snake_case word, where the kind of failure is known

    def __str__(self) -> str:
        return f"{self.what}\n  why: {self.why}\n  fix: {self.fix}"


class UsageError(LongreachError):
    """The request itself is wrong: an option's value, an unknown GPU, release or catalogue name."""

    exit_code: ClassVar[int] = 2


class InputFileError(LongreachError):
    """A file or folder that was named cannot be read or does not hold what it should."""


class UnknownModelError(LongreachError):
    """A model configuration that is not understood; the verdict is "unknown", never a guess."""


class EngineError(LongreachError):
    """The engine is not installed, refused to start, died, or contradicts itself."""


class ServerError(LongreachError):
    """An HTTP server could not be reached, refused the request, or broke its stream."""
