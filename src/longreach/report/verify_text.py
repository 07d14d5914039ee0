"""What `verify` prints: the sends side by side, then the checklist with its evidence."""

from longreach.measure.verify_report import SendReport, VerifyReport
from longreach.report.checklist_text import render_checklist
from longreach.report.style import Paint, printable, table
from longreach.units import format_duration, format_tokens


def render_verify(report: VerifyReport, paint: Paint) -> str:
    """One screen: what was sent, what came back, what is proven."""
    version = f" by vLLM {report.server.version}" if report.server.version else ""
    lines = [paint(printable(f"{report.model or 'no model'} at {report.base_url}{version}"), "bold"), ""]
    if report.sends:
        lines += [*_sends(report), ""]
    return "\n".join([*lines, *render_checklist(report.items, paint, interrupted=report.interrupted)])


def _sends(report: VerifyReport) -> list[str]:
    header = ("send", "prompt", "cached", "TTFT", "ITL", "tokens/s", "output", "finish")
    return table([header, *(_send(send) for send in report.sends)], frozenset(range(1, 7)))


def _send(send: SendReport) -> tuple[str, ...]:
    usage = send.usage
    return (
        send.label,
        format_tokens(usage.prompt_tokens) if usage else "-",
        "-" if send.cached_tokens is None else format_tokens(send.cached_tokens),
        "-" if send.ttft_s is None else format_duration(send.ttft_s),
        "-" if send.itl_s is None else f"{1000 * send.itl_s:.1f} ms",
        "-" if send.output_tokens_per_s is None else f"{send.output_tokens_per_s:.1f}",
        "-" if usage is None or usage.completion_tokens is None else format_tokens(usage.completion_tokens),
        send.finish_reason or (send.failure.kind if send.failure else "-"),
    )
