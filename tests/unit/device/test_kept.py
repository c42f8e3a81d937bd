"""The files a device keeps."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import msgspec
import pytest

from carrick_device.answers import Scores
from carrick_device.errors import DeviceError
from carrick_device.kept import Kept
from tests.unit.device.scripted import scores

SERVER = "https://scores.example.org"


def kept_in(folder: Path, server: str = SERVER, client_id: str = "carrick-device") -> Kept:
    kept = Kept(folder / "state" / "token.json", server, client_id)
    kept.prepare()
    return kept


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def some(*totals: int, **changed: object) -> Scores:
    return msgspec.convert(scores(*totals, **changed), Scores)


def test_token_and_scores_come_back_after_a_restart(tmp_path: Path) -> None:
    kept_in(tmp_path).save_token("secret")
    kept_in(tmp_path).save_scores(some(3))
    assert kept_in(tmp_path).token() == "secret"
    assert kept_in(tmp_path).scores() == some(3)


def test_files_and_folder_are_for_their_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        kept = kept_in(tmp_path)
        kept.save_token("secret")
        kept.save_scores(some(3))
    finally:
        os.umask(before)
    assert mode(tmp_path / "state") == 0o700
    assert {file.name: mode(file) for file in (tmp_path / "state").iterdir()} == {
        "token.json": 0o600,
        "token.json.scores": 0o600,
    }


def test_a_file_that_others_can_read_is_closed_to_them_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = kept_in(tmp_path)
    kept.save_token("secret")
    file = tmp_path / "state" / "token.json"
    file.chmod(0o644)
    assert kept.token() == "secret"
    assert mode(file) == 0o600
    assert "could be read by others (mode 0644)" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("damage", [b"", b"{", b'{"access_token": 5}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_file_is_as_good_as_none(damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = kept_in(tmp_path)
    for name in ("token.json", "token.json.scores"):
        (tmp_path / "state" / name).write_bytes(damage)
    assert kept.token() is None
    assert kept.scores() is None
    assert caplog.text.count("is damaged; it is ignored") == 2


def test_a_token_is_for_its_own_server_and_client_only(tmp_path: Path) -> None:
    kept_in(tmp_path).save_token("secret")
    kept_in(tmp_path).save_scores(some(3))
    other = kept_in(tmp_path, server="https://other.example")
    assert (other.token(), other.scores()) == (None, None)
    assert kept_in(tmp_path, client_id="other").token() is None


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = kept_in(tmp_path)
    kept.save_token("old")

    def crash(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", crash)
    kept.save_token("new")
    assert kept.token() == "old"
    assert [file.name for file in (tmp_path / "state").iterdir()] == ["token.json"]


def test_a_failure_to_write_is_told_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept = kept_in(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    kept.save_token("secret")
    assert "token.json: No space left on device" in caplog.text
    assert "secret" not in caplog.text


def test_scores_are_written_only_when_they_are_others(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    file = tmp_path / "state" / "token.json.scores"
    kept.save_scores(some(3))
    first = file.stat().st_ino
    kept.save_scores(some(3, cached_at="2026-01-08T15:00:00Z"))
    assert file.stat().st_ino == first
    kept.save_scores(some(4))
    assert kept_in(tmp_path).scores() == some(4)


def test_what_is_forgotten_is_gone_and_can_be_kept_again(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    kept.save_token("secret")
    kept.save_scores(some(3))
    kept.forget()
    kept.forget()
    assert list((tmp_path / "state").iterdir()) == []
    kept.save_scores(some(3))
    assert kept.scores() == some(3)


def test_a_place_where_nothing_can_be_kept_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(DeviceError, match=r"cannot keep the token in .*state: .*give another --token-file"):
        kept_in(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DeviceError, match="is a folder"):
        Kept(tmp_path / "folder", SERVER, "x").prepare()


def test_a_folder_that_was_there_keeps_its_rights(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    (tmp_path / "state").mkdir(mode=0o755)
    (tmp_path / "state").chmod(0o755)
    kept_in(tmp_path).save_token("secret")
    assert mode(tmp_path / "state") == 0o755
    assert mode(tmp_path / "state" / "token.json") == 0o600
