"""`longreach demo`: the main job on any machine, with the real engine where it can be had."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from longreach.cli.params import FILE, TOKENS, engine_option, stdout_paint
from longreach.errors import UsageError
from longreach.plan.goal import Goal, NamedGoal

_BOX_GOAL = Goal(
    max_model_len=750_000,
    kv_cache_dtype="fp8_e4m3",
    kv_cache_memory_bytes=10 * 2**30,
    tp_size=4,
    mean_input_tokens=32_768,
    speculation="mtp:3",
)
_TINY = Goal(max_model_len=40_960, kv_cache_memory_bytes=64 * 2**20, max_num_batched_tokens=8192, max_num_seqs=4)
_TINY_WITH_TIERS = replace(_TINY, max_model_len=16_000, kv_cache_memory_bytes=8 * 2**20, cpu_tier_bytes=48 * 2**20)
_PLAN, _PLAN_WITH_TIERS = "tiny.yaml", "tiny-tiers.yaml"
_RANDOM_WEIGHTS = "the tiny model's weights are random: it cannot find anything in a text"


@dataclass(slots=True)
class _Summary:
    """What was proven, line by line."""

    lines: list[tuple[bool, str]] = field(default_factory=list)

    def add(self, text: str, *, proven: bool = True) -> None:
        self.lines.append((proven, text))

    @property
    def is_complete(self) -> bool:
        return all(proven for proven, _ in self.lines)


@click.command(short_help="The whole story, on the real engine and this machine's CPU.")
@engine_option
@click.option(
    "--length", type=TOKENS, default=32_768, show_default=True, metavar="TOKENS", help="Prompt length to prove."
)
@click.option(
    "--keep", type=FILE, metavar="FOLDER", help="Leave the tiny model and its plans in a new folder, to go on with."
)
def demo(engine: Path | None, length: int, keep: Path | None) -> int:
    """Plan a four-GPU box, then plan, start, prove and stop a tiny model on this machine's CPU.

    Without an engine the planning part still runs, and the exit code is 1.
    """
    from textwrap import wrap

    from longreach.errors import LongreachError
    from longreach.report.findings_text import render_error

    paint, summary = stdout_paint(), _Summary()
    with _workplace(keep) as folder:
        _title("1. The box: 4 x RTX 4090, Qwen3.6-27B (W4A16), 750,000 tokens, 10 GiB of fp8 KV cache on each card")
        _plan_box(summary, paint)
        _title("2. This machine: a tiny random model on the vLLM CPU build")
        try:
            _prove_engine(folder, engine, length, summary, paint)
        except LongreachError as error:
            click.echo("\n".join(render_error(error, paint)))
            summary.add(f"the engine part: {error.what}", proven=False)
    _title("What was proven")
    for proven, text in summary.lines:
        mark = paint("proven", "green") if proven else paint("NOT proven", "red")
        click.echo(f"  {mark}  " + "\n".join(wrap(text, 100, subsequent_indent=" " * 10)))
    if keep is not None:
        _say_how_to_go_on(keep, engine)
    return 0 if summary.is_complete else 1


@contextmanager
def _workplace(keep: Path | None) -> Iterator[Path]:
    """A folder that is gone afterwards, or the new one that is to stay, absolute so that its plans work from anywhere."""
    import tempfile

    if keep is None:
        with tempfile.TemporaryDirectory(prefix="longreach-demo-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"--keep {keep} cannot be made", error.strerror or str(error), "name a new folder") from error
    yield keep.absolute()


def _say_how_to_go_on(folder: Path, engine: Path | None) -> None:
    where = f" --engine {engine}" if engine is not None else ""
    click.echo(f"\nThe tiny model and its plans are in {folder}. To go on:\n")
    click.echo(f"  longreach up {folder / _PLAN}{where}")
    click.echo(f"  longreach bench {folder / _PLAN} --states cold,warm,evicted --input-tokens 4k --html bench.html")
    click.echo("  longreach down")
    click.echo(f"  longreach tiers {folder / _PLAN_WITH_TIERS}{where}")


def _title(text: str) -> None:
    click.echo(f"\n{stdout_paint()(text, 'bold')}\n")


def _plan_box(summary: _Summary, paint: Any) -> None:
    from longreach.cli.planning import Place, make_plan_from
    from longreach.engine.release import DEFAULT_RELEASE
    from longreach.report.plan_text import render_plan

    place = Place("w4a16", "4xRTX4090", "pcie4x16", ram=256 * 2**30, numa=1)
    plan = make_plan_from("qwen3.6-27b", DEFAULT_RELEASE, _BOX_GOAL, place)
    click.echo(render_plan(plan, paint))
    cache, speed = plan.instances[0].kv_cache, plan.instances[0].speed[0]
    assert cache is not None
    bound = speed.ttft_cold_s.lower_bound
    summary.add(
        f"the plan {plan.verdict.replace('_', ' ')}: {cache.kv_capacity_tokens:,} tokens, "
        f"{cache.max_concurrency:.2f} requests at once; "
        f"no such box answers a cold 750,000-token prompt in under {bound:,.0f} s"
    )


def _prove_engine(folder: Path, engine: Path | None, length: int, summary: _Summary, paint: Any) -> None:
    from longreach.cli.from_plan import launch_specs
    from longreach.cli.plan_file import write_plan
    from longreach.cli.up import start
    from longreach.host.ports import choose_free_port
    from longreach.launch.down import down
    from longreach.launch.state import default_state_folder
    from longreach.report.launch_text import render_up
    from longreach.report.plan_text import render_plan

    port = choose_free_port()
    plan = plan_tiny_model(folder, _TINY, port)
    plan_path = folder / _PLAN
    write_plan(plan_path, plan)
    write_plan(
        folder / _PLAN_WITH_TIERS,
        plan_tiny_model(folder, replace(_TINY_WITH_TIERS, disk_tier_path=f"{folder}/kv"), port),
    )
    click.echo(render_plan(plan, paint))
    _title("3. Start it as planned")
    name = "demo"
    report = start(launch_specs(plan), plan_path, name=name, engine=engine, foreground=False, stall_s=180)
    try:
        click.echo(render_up(report, paint))
        _sum_up_start(report, summary)
        _title(f"4. Prove it with a prompt of {length:,} tokens")
        _verify(plan, length, summary, paint)
    finally:
        ended = down([name], default_state_folder(), lambda _event: None)
        survivors = [pid for end in ended.instances for pid in end.survivors]
        summary.add("the engine was stopped and left nothing behind", proven=not survivors)


def plan_tiny_model(folder: Path, goal: Goal, port: int) -> Any:
    """A plan for the tiny model, written to `folder`, on this machine's CPU."""
    from longreach.engine.release import DEFAULT_RELEASE, get_release
    from longreach.hardware.machine import machine_from
    from longreach.launch.tiny_model import write_tiny_model
    from longreach.model.source import load_model
    from longreach.plan.build import make_plan

    model_folder = write_tiny_model(folder / "tiny-qwen3")
    placed = replace(goal, model_path=str(model_folder), served_model_name="tiny-qwen3", port=port)
    model = load_model(str(model_folder), None)
    return make_plan(model, machine_from(None, 0), get_release(DEFAULT_RELEASE), [NamedGoal("main", placed)])


def _sum_up_start(report: Any, summary: _Summary) -> None:
    checked = [item for instance in report.instances for item in instance.observations]
    failed = [item.name for item in checked if item.verdict == "fail"]
    agreed = [item.name for item in checked if item.verdict == "pass"]
    text = f"vLLM {report.instances[0].engine_version} started as planned; it agrees on {', '.join(agreed)}"
    summary.add(text if not failed else f"the engine differs from the plan in {', '.join(failed)}", proven=not failed)


def _verify(plan: Any, length: int, summary: _Summary, paint: Any) -> None:
    from longreach.cli.from_plan import verify_target
    from longreach.cli.verify import run_verify
    from longreach.measure.target import VerifySettings
    from longreach.report.verify_text import render_verify

    target = verify_target(plan, plan.instances[0], length)
    settings = VerifySettings(prompt_tokens=length, output_tokens=32, needles_off_reason=_RANDOM_WEIGHTS)
    report = run_verify(target, settings)
    click.echo(render_verify(report, paint))
    if report.interrupted:
        raise KeyboardInterrupt
    for send in report.sends:
        if send.usage is not None and send.ttft_s is not None:
            cached = "unknown" if send.cached_tokens is None else f"{send.cached_tokens:,}"
            summary.add(
                f"{send.label}: {send.usage.prompt_tokens:,} prompt tokens by the server's count, {cached} cached, "
                f"first token after {send.ttft_s:.2f} s",
                proven=send.usage.prompt_tokens == length,
            )
    failed = [item.title for item in report.items if item.verdict == "fail"]
    passed = sum(item.verdict == "pass" for item in report.items)
    summary.add(f"{passed} checks passed" if not failed else f"checks failed: {', '.join(failed)}", proven=not failed)
