"""The command, against a server in a thread of its own."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from carrick_device import command
from carrick_device.errors import DeviceError
from carrick_device.kept import Kept
from tests.unit.device.scripted import Script, refused, scores, serving


@contextmanager
def served(script: Callable[[], Script]) -> Iterator[str]:
    """The address of a server with the script."""
    address: Future[str] = Future()
    done = threading.Event()

    async def serve() -> None:
        async with serving(script()) as url:
            address.set_result(url)
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield address.result()
    finally:
        done.set()
        thread.join()


def signed_in(folder: Path, url: str) -> str:
    """The path of a token file for the server."""
    file = folder / "token.json"
    Kept(file, url, "carrick-device").save_token("secret-access-token")
    return str(file)


def test_once_prints_the_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(lambda: Script(patrols=[scores(30, -5)])) as url:
        assert command.run(["--server", url, "--token-file", signed_in(tmp_path, url), "--once"]) == 0
    said = capsys.readouterr()
    assert "Patrol scores" in said.out
    assert "30" in said.out
    assert "-5" in said.out
    assert said.err == ""


def test_once_without_scores_is_one_line_and_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(lambda: Script(patrols=[refused(502, "upstream_error")])) as url:
        assert command.run(["--server", url, "--token-file", signed_in(tmp_path, url), "--once"]) == 1
    assert capsys.readouterr().err == "carrick-device: The server answered 502: about upstream_error\n"


def test_once_draws_all_pages_into_a_picture(tmp_path: Path) -> None:
    with served(lambda: Script(patrols=[scores(*range(6))])) as url:
        arguments = ["--server", url, "--token-file", signed_in(tmp_path, url), "--once"]
        assert command.run([*arguments, "--display", "image", "--image-out", str(tmp_path / "scores.png")]) == 0
    with Image.open(tmp_path / "scores.png") as picture:
        assert picture.size == (640, 2 * 320 + 20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    with served(lambda: Script(patrols=[scores(30)])) as url:
        arguments = [sys.executable, "-m", "carrick_device", "--server", url]
        process = subprocess.Popen(
            [*arguments, "--token-file", signed_in(tmp_path, url)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert "Patrol scores" in process.stdout.readline()
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    {
        "no server": ([], 2, "--server"),
        "no address": (["--server", "scores"], 1, "--server 'scores' is no address of a server"),
        "another display": (["--server", "https://x", "--display", "wall"], 2, "wall"),
        "no file for the picture": (["--server", "https://x", "--display", "image"], 2, "go together"),
        "a file without a picture": (["--server", "https://x", "--image-out", "x.png"], 2, "go together"),
        "LEDs in a terminal": (["--server", "https://x", "--led", "rows=32"], 2, "--led is for --display matrix"),
        "no LEDs": (["--server", "https://x", "--display", "matrix"], 1, "needs the library rgbmatrix"),
        "no client": (["--server", "https://x", "--client-id", ""], 1, "--client-id takes 1 to 255"),
        "no folder": (
            ["--server", "https://x", "--display", "image", "--image-out", "/nowhere/at/all.png"],
            1,
            "/nowhere/at/all.png cannot be written",
        ),
    }.values(),
)
def test_what_is_wrong_is_one_line(
    arguments: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run([*arguments, "--token-file", str(tmp_path / "token.json")]) == code
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("carrick-device: ")
    assert said.count("\n") == 1


def test_an_address_that_others_can_listen_to_is_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--server", "http://x.example", "--token-file", str(tmp_path / "token.json"), "--display", "matrix"]
    assert command.run(arguments) == 1
    warning, _ = capsys.readouterr().err.splitlines()
    assert warning.startswith("carrick-device: http://x.example is not encrypted")


def test_help_is_for_newcomers(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(["--help"]) == 0
    said = capsys.readouterr().out
    assert "a leader confirms it with a phone" in " ".join(said.split())
    assert "--server" in said


def test_the_token_is_kept_in_the_folder_for_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served(lambda: Script(authorize=[refused(401, "invalid_client")])) as url:
        assert command.run(["--server", url, "--once"]) == 1
    assert (tmp_path / "carrick-device").is_dir()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("carrick_device.displays")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "segno", None)
    with pytest.raises(DeviceError, match=r"segno is not installed; try: pip install 'carrick\[device\]'"):
        command.device(server="https://x.example", token_file=tmp_path / "token.json")
