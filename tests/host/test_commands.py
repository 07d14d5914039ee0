import sys

from longreach.host.commands import run_command


def test_output_and_exit_code_are_kept() -> None:
    result = run_command([sys.executable, "-c", "import sys; print('out'); sys.exit(3)"], timeout_s=30)
    assert (result.returncode, result.stdout, result.succeeded) == (3, "out\n", False)


def test_a_missing_command_is_told_from_a_failing_one() -> None:
    result = run_command(["no-such-command-here"], timeout_s=1)
    assert (result.returncode, result.problem) == (None, "no-such-command-here is not installed")


def test_a_slow_command_is_ended() -> None:
    result = run_command([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.2)
    assert result.returncode is None
    assert result.problem is not None
    assert "did not finish in 0.2 s" in result.problem
