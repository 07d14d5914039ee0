import json

from tests.measure.bench.results import cold_run, failed, record, result
from tests.report.bench_examples import three_states, three_states_summary

from longreach.measure.bench.summary import summarise
from longreach.report.bench_document import bench_document

REQUEST_KEYS = {
    "ok",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "ttft_s",
    "time_to_first_answer_s",
    "itl_s",
    "e2e_latency_s",
    "error",
}
SUMMARY_KEYS = {"num_ok", "num_failed", "ttft_s", "itl_s", "output_tokens_per_s", "client_loop_lag_p99_s"}


def test_the_keys_that_others_rely_on_are_there() -> None:
    run = cold_run(3)
    document = bench_document(run, summarise(run))
    assert all(request.keys() >= REQUEST_KEYS for request in document["requests"])
    summary = document["summary"]
    assert summary.keys() >= SUMMARY_KEYS
    assert {key: summary["ttft_s"][key] for key in ("mean", "p50", "p90", "p99")} == dict.fromkeys(
        ("mean", "p50", "p90", "p99"), 2.0
    )
    assert (summary["num_ok"], summary["num_failed"], summary["client_loop_lag_p99_s"]) == (3, 0, 0.002)


def test_requests_are_those_that_the_figures_are_made_from() -> None:
    document = bench_document(three_states(), three_states_summary())
    assert len(document["requests"]) == document["summary"]["num_ok"] + document["summary"]["num_failed"] == 36
    assert "flood" not in {request["state"] for request in document["requests"]}
    assert [state["state"] for state in document["summary"]["states"]] == ["cold", "warm", "evicted"]
    assert [phase["state"] for phase in document["phases"]] == ["cold", "warm", "flood", "evicted"]


def test_what_was_not_measured_is_null_and_all_of_it_is_json() -> None:
    run = result(failed(0), record(1, itl_s=None, cached_tokens=None))
    document = json.loads(json.dumps(bench_document(run, summarise(run)), allow_nan=False))
    assert document["summary"]["itl_s"] is None
    assert document["requests"][0]["ttft_s"] is None
    assert document["requests"][0]["error"] == "This model's maximum context length is 512 tokens."
    assert document["schema"] == "longreach/bench/1"
