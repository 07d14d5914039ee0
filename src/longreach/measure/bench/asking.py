"""What is sent for one request of the workload, salted so that the cache holds no more of it than is meant. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from longreach.measure.bench.values import PhaseSpec
from longreach.measure.sending import Sender
from longreach.measure.workload.values import Workload, WorkloadRequest


@dataclass(frozen=True, slots=True)
class Asking:
    """How bodies are made. `salts` are those of requests whose first pass was before this run was taken up again."""

    sender: Sender
    workload: Workload
    salt: str
    salts: Mapping[int, str | None]
    is_vllm: bool
    exact_output: bool

    def render(self, phase: PhaseSpec, request: WorkloadRequest) -> bytes:
        """The body. Only vLLM is sent fields of its own: others may refuse what they do not know."""
        text = self.workload.render_text(request)
        fields = dict(self.sender.fields)
        if self.is_vllm:
            own: dict[str, object] = {"cache_salt": self._salt(phase, request)}
            if self.exact_output:
                own |= {"ignore_eos": True, "min_tokens": request.output_tokens}
            fields = own | fields
        elif phase.state == "flood":
            text = f"{self._salt(phase, request)} {text}"[: len(text)]
        return replace(self.sender, fields=fields).render(text, request.output_tokens)

    def _salt(self, phase: PhaseSpec, request: WorkloadRequest) -> str:
        if phase.state == "flood":
            return f"{phase.name}-{request.index}-{self.salt}"
        return self.salts.get(request.index) or self.salt
