from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from carrick.cli import demo
from carrick.ops.simulation import Balance


def test_a_sum_that_is_right_ends_with_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.summarise(Balance(put=10, delivered=7, dead=1, waiting=2)) == 0
    assert capsys.readouterr().out == "put 10 = delivered 7 + dead 1 + waiting 2: it adds up, nothing was lost\n"


def test_a_sum_that_is_wrong_is_said_loudly_with_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.summarise(Balance(put=10, delivered=7, dead=1, waiting=1)) == 1
    assert "does NOT add up" in capsys.readouterr().out


def test_signals_ask_for_a_stop_and_the_former_handlers_come_back() -> None:
    former = signal.getsignal(signal.SIGTERM)
    with demo.asked_to_stop() as stopping:
        signal.raise_signal(signal.SIGTERM)
        assert stopping.wait(10)
    assert signal.getsignal(signal.SIGTERM) is former


def test_rates_are_per_second_over_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 102.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    rates = demo.Rates()
    assert rates.after({"a": 10, "b": 0}) == {"a": 0.0, "b": 0.0}
    assert rates.after({"a": 30, "b": 1}) == {"a": 10.0, "b": 0.5}


def test_the_temporary_database_goes_away_and_a_given_one_stays() -> None:
    with demo.demo_database("sqlite:///mine.db") as url:
        assert url == "sqlite:///mine.db"
    with demo.demo_database(None) as url:
        folder = url.removeprefix("sqlite:///").rpartition("/")[0]
        assert Path(folder).is_dir()
    assert not Path(folder).exists()
