"""The key file of an embedded database: made once, for its owner's eyes, and rotated without losing anything."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from carrick.errors import SettingsError
from carrick_scoreboard import own_keys
from carrick_scoreboard.own_keys import OwnKeys
from carrick_scoreboard.sealing import Unreadable, new_key

PLACE = "credential:7:access"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "carrick.db.key"


def names(path: Path) -> list[str]:
    return [line.partition(":")[0] for line in path.read_text().split()]


def test_the_first_start_makes_a_key_that_only_its_owner_can_read(path: Path) -> None:
    sealed = OwnKeys(path).seal("token", PLACE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert OwnKeys(path).unseal(sealed, PLACE) == "token"
    assert list(path.parent.iterdir()) == [path]


def test_of_many_that_start_at_once_all_have_the_same_key(path: Path) -> None:
    together = threading.Barrier(8)

    def start(_: int) -> OwnKeys:
        together.wait(20)
        return OwnKeys(path)

    with ThreadPoolExecutor(8) as pool:
        rings = list(pool.map(start, range(8)))
    sealed = rings[0].seal("token", PLACE)
    assert [ring.unseal(sealed, PLACE) for ring in rings] == ["token"] * 8
    assert list(path.parent.iterdir()) == [path]


def test_who_comes_second_takes_the_key_of_the_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[str] = []

    def overtaken() -> tuple[str, bytes]:
        monkeypatch.undo()
        first.append(OwnKeys(path).newest)
        return new_key()

    monkeypatch.setattr(own_keys, "new_key", overtaken)
    assert OwnKeys(path).newest == first[0]


@pytest.mark.parametrize("content", [b"", b"\n", b"k1:c2VjcmV0", b"secret", b"\xff\xfe", b"k1:" + b"A" * 43])
def test_a_damaged_file_is_named_and_neither_shown_nor_replaced(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SettingsError) as refused:
        OwnKeys(path)
    line = str(refused.value)
    assert str(path) in line
    assert "CARRICK_SECRET_KEYS" in line
    assert "secret" not in line
    assert "c2VjcmV0" not in line
    assert path.read_bytes() == content


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused_with_what_to_do(path: Path, mode: int) -> None:
    OwnKeys(path)
    path.chmod(mode)
    with pytest.raises(SettingsError, match="chmod 600"):
        OwnKeys(path)


def test_a_place_where_no_file_can_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no-such-folder"):
        OwnKeys(tmp_path / "no-such-folder" / "carrick.db.key")
    (tmp_path / "folder.key").mkdir(0o700)
    with pytest.raises(SettingsError, match="folder.key"):
        OwnKeys(tmp_path / "folder.key")


def test_a_rotation_puts_a_new_key_first_and_keeps_the_one_before(path: Path) -> None:
    ring = OwnKeys(path)
    (first,) = names(path)
    sealed = ring.seal("token", PLACE)
    with ring.rotating():
        assert names(path)[1:] == [first]
        assert not ring.is_newest(sealed)
        again = ring.seal(ring.unseal(sealed, PLACE), PLACE)
    second = names(path)[0]
    assert names(path) == [second, first]
    with ring.rotating():
        assert names(path)[1:] == [second, first]
    assert names(path)[1:] == [second]
    assert ring.unseal(again, PLACE) == "token"
    with pytest.raises(Unreadable):
        ring.unseal(sealed, PLACE)


def test_a_process_that_runs_notices_the_rotation_of_another(path: Path) -> None:
    running, other = OwnKeys(path), OwnKeys(path)
    with other.rotating():
        sealed = other.seal("token", PLACE)
        assert running.unseal(sealed, PLACE) == "token"
        assert running.newest == other.newest


def test_a_rotation_that_fails_in_the_middle_loses_no_key_and_the_next_one_goes_on(path: Path) -> None:
    ring = OwnKeys(path)
    (first,) = names(path)
    sealed = ring.seal("token", PLACE)

    with pytest.raises(RuntimeError), ring.rotating():
        raise RuntimeError("the power is gone")
    assert names(path)[1:] == [first]
    assert ring.unseal(sealed, PLACE) == "token"
    with ring.rotating():
        assert ring.unseal(sealed, PLACE) == "token"
        again = ring.seal("token", PLACE)
    assert len(names(path)) == 2
    assert OwnKeys(path).unseal(again, PLACE) == "token"


def test_rotations_take_turns(path: Path) -> None:
    ring = OwnKeys(path)
    entered = threading.Event()

    def second() -> None:
        with OwnKeys(path).rotating():
            entered.set()

    with ThreadPoolExecutor(1) as pool:
        with ring.rotating():
            waiting = pool.submit(second)
            assert not entered.wait(0.2)
        waiting.result(20)
    assert entered.is_set()
    assert len(names(path)) == 2


def test_a_file_that_vanishes_while_the_service_runs_is_told_and_changes_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ring = OwnKeys(path)
    sealed = ring.seal("token", PLACE)
    path.unlink()
    with caplog.at_level(logging.ERROR):
        assert ring.unseal(sealed, PLACE) == "token"
    assert "keys.file_unusable" in caplog.text
