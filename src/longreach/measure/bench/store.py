"""Where entries go: into the log that figures are made from, into the results file, and answers into a file of their own."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import orjson

from longreach.errors import InputFileError
from longreach.measure.bench.journal import Journal, check_continues, continue_journal, open_journal, read_log
from longreach.measure.bench.log import Entry, Resumption, RunEnd, RunLog
from longreach.measure.bench.settings import BenchSettings
from longreach.measure.bench.values import BenchHeader, RequestRecord
from longreach.measure.stream import StreamResult


class Store:
    """Keeps what happens. `open_store` makes it."""

    def __init__(self, log: RunLog, journal: Journal | None, answers: BinaryIO | None) -> None:
        self.log = log
        self._journal = journal
        self._answers = answers

    def keep(self, entry: Entry) -> None:
        """Take an entry in; it is in the file when this returns."""
        self.log.take(entry)
        if self._journal is not None:
            self._journal.write(entry)

    def keep_answer(self, record: RequestRecord, result: StreamResult) -> None:
        """Write the text of an answer, where answers are wanted."""
        if self._answers is not None:
            said = {
                "phase": record.phase,
                "index": record.index,
                "reasoning": result.reasoning,
                "content": result.content,
            }
            try:
                self._answers.write(orjson.dumps(said) + b"\n")
                self._answers.flush()
            except OSError as error:
                raise _unwritable(Path(self._answers.name), error) from error

    def end(self, lag_p99_s: float | None, *, interrupted: bool) -> None:
        """The run has ended. Of a run in several parts the largest lag counts."""
        lags = [lag for lag in (lag_p99_s, self.log.lag_p99_s) if lag is not None]
        self.keep(RunEnd(max(lags, default=None), interrupted))


@contextmanager
def open_store(settings: BenchSettings, header: BenchHeader) -> Iterator[Store]:
    """A store for this run, or for what is left of the one in the results file when that is to be resumed."""
    with ExitStack() as files:
        log, journal = RunLog(header), None
        resumes = settings.journal is not None and settings.resume and settings.journal.exists()
        if settings.journal is not None and resumes:
            log = read_log(settings.journal)
            check_continues(log.header, header, settings.journal)
            journal = files.enter_context(continue_journal(settings.journal))
        elif settings.journal is not None:
            journal = files.enter_context(open_journal(settings.journal, header))
        answers = None if settings.answers is None else files.enter_context(_open_answers(settings.answers, resumes))
        store = Store(log, journal, answers)
        if resumes:
            if not log.header.workload_digest:  # nothing answered then, and it was not known what to send
                store.keep(header)
            store.keep(Resumption(_fresh_salt(log)))
        yield store


def _fresh_salt(log: RunLog) -> str | None:
    """A new salt where cold is claimed: what was cut off may have left a part of its prompt in the cache."""
    return secrets.token_hex(8) if log.first_pass.state == "cold" else log.header.cache_salt


def _open_answers(path: Path, resumes: bool) -> BinaryIO:
    try:
        return path.open("ab" if resumes else "xb")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputFileError:
    reason = error.strerror or str(error)
    return InputFileError(f"{path} cannot be written", reason, "--save-answers FILE.jsonl elsewhere")
