from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from carrick.cli import demo
from carrick.errors import CarrickError
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


def test_a_fresh_demo_forgets_its_own_files_and_no_others(tmp_path: Path) -> None:
    for name in ("demo.db", "demo.db-wal", "osm.json", "mine.txt"):
        (tmp_path / name).touch()
    with demo.kept_folder(tmp_path, fresh=False):
        assert (tmp_path / "demo.db").exists()
    with demo.kept_folder(tmp_path, fresh=True):
        assert sorted(found.name for found in tmp_path.iterdir()) == ["lock", "mine.txt"]


def test_a_folder_that_cannot_be_made_is_said_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(CarrickError, match="cannot be used: Not a directory; try --folder DIR"),
        demo.kept_folder(tmp_path / "file" / "demo", fresh=False),
    ):
        pass
