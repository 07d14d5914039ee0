"""Prompts are made while the server may still be asked."""

from tests.measure.known_truth import MODEL, known_truth

from longreach.measure.bench.prepare import prepare_workload
from longreach.measure.bench.run import run_bench
from longreach.measure.bench.settings import BenchSettings, BenchTarget
from longreach.measure.workload.wishes import SyntheticSource, WorkloadWish


async def test_prompts_are_counted_by_the_server_where_no_tokenizer_is_at_hand() -> None:
    wish, settings = WorkloadWish(SyntheticSource(num_requests=2, input_tokens=300, output_tokens=4)), BenchSettings()
    async with known_truth() as server:
        target = BenchTarget(server.url, MODEL, tokenizer=None)
        workload = await prepare_workload(target, settings, wish, lambda _: None)
        result = await run_bench(target, settings, workload, lambda _: None)
    assert "/tokenize" in workload.tokenizer
    assert [record.prompt_tokens for record in result.records] == [300, 300]
