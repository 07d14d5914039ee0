from tests.measure.bench.results import failed, record, result

from longreach.measure.bench.compared_runs import describe_run


def test_a_run_is_described_by_what_it_was_sent_and_what_came_back() -> None:
    run = describe_run(result(record(0), failed(1), record(0, "warm"), record(1, "warm")))
    assert run.sent == "2 requests, cold, then warm; one at a time; synthetic text"
    assert (run.num_ok, run.num_wanted, run.model, run.server_version) == (3, 4, "tiny", "0.32.0")
