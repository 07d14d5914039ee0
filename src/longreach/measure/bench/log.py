"""All that is known of a run so far, taken in entry by entry: while it runs, and when its file is read again. Pure."""

from dataclasses import dataclass, field

from longreach.measure.bench.values import BenchHeader, BenchResult, PhaseReport, PhaseSpec, RequestRecord, ServerSample


@dataclass(frozen=True, slots=True)
class Resumption:
    """A run goes on. From here on another salt counts: a request that was cut off may have left a part of its prompt in
    the cache.
    """

    cache_salt: str | None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The last entry of a run that had the time to write one."""

    client_loop_lag_p99_s: float | None
    interrupted: bool


Entry = BenchHeader | Resumption | RequestRecord | PhaseReport | ServerSample | RunEnd


@dataclass(slots=True)
class RunLog:
    """A run entry by entry. The last header counts, and of two records of the same request the later one."""

    header: BenchHeader
    records: dict[tuple[str, int], RequestRecord] = field(default_factory=dict)
    phases: list[PhaseReport] = field(default_factory=list)
    samples: list[ServerSample] = field(default_factory=list)
    salts: dict[int, str | None] = field(default_factory=dict)  # of each request's first pass
    end: RunEnd | None = None
    lag_p99_s: float | None = None
    salt: str | None = None  # of what is sent from here on; None: the header's

    def take(self, entry: Entry) -> None:
        """What happened next."""
        self.end = None
        match entry:
            case BenchHeader():
                self.header = entry
            case Resumption():
                self.salt = entry.cache_salt
            case RequestRecord():
                self.records.pop((entry.phase, entry.index), None)  # the later one has the later place too
                self.records[entry.phase, entry.index] = entry
                if entry.phase == self.first_pass.name:
                    self.salts[entry.index] = self.salt or self.header.cache_salt
            case PhaseReport():
                self.phases.append(entry)
            case ServerSample():
                self.samples.append(entry)
            case RunEnd():
                self.end, self.lag_p99_s = entry, entry.client_loop_lag_p99_s

    def has(self, phase: str, index: int) -> bool:
        """That request was sent and has ended. One that found no server was not."""
        record = self.records.get((phase, index))
        return record is not None and record.error_kind != "unreachable"

    @property
    def first_pass(self) -> PhaseSpec:
        """The first one that figures are made from."""
        return next(phase for phase in self.header.phases if phase.state != "flood")

    @property
    def last_moment_s(self) -> float:
        """When the last thing happened."""
        ends = [record.sent_s + record.e2e_latency_s for record in self.records.values()]
        return max([0.0, *ends, *(phase.ended_s for phase in self.phases), *(sample.at_s for sample in self.samples)])

    def result(self) -> BenchResult:
        """The run as it is: one without an end was cut off."""
        return BenchResult(
            header=self.header,
            records=tuple(self.records.values()),
            phases=tuple(self.phases),
            samples=tuple(self.samples),
            client_loop_lag_p99_s=self.lag_p99_s,
            interrupted=self.end is None or self.end.interrupted,
        )
