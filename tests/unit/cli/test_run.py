"""What every command has in common: exit codes, and errors of one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from carrick import __version__, cli
from carrick.errors import StoreUnavailable


def raising(error: BaseException) -> object:
    def command(*_: object, **__: object) -> None:
        raise error

    return command


def test_without_a_command_it_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == 0
    shown = capsys.readouterr().out
    assert "migrate" in shown
    assert "demo" in shown


def test_version_prints_the_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["migrate", "--nonsense"], ["demo", "--seconds", "-1"], ["demo", "x"]]
)
def test_bad_usage_is_one_line_and_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("carrick: ")
    assert said.err.count("\n") == 1


def test_an_expected_failure_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", raising(StoreUnavailable("the database does not answer:\n  connection refused")))
    assert cli.run(["migrate"]) == 1
    assert capsys.readouterr().err == "carrick: the database does not answer: connection refused\n"


def test_ctrl_c_ends_a_command_with_130_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", raising(KeyboardInterrupt()))
    assert cli.run(["migrate"]) == 130
    assert capsys.readouterr().err == ""


def test_a_fault_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "app", raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.run(["migrate"])


def test_a_reader_that_stops_reading_causes_no_stack_trace(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from carrick.cli import main; main()", "migrate", "--sql"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


def test_a_command_does_not_wait_for_packages_that_only_services_need() -> None:
    """Each `carrick status` would load a web server, a driver and a client of Kafka, else."""
    heavy = {"aiohttp", "psycopg", "prometheus_client", "confluent_kafka"}
    asked = f"import sys, carrick.cli; print(sorted({heavy} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
