"""`carrick drain --serve` as a cron service meets it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from carrick.cli import run
from carrick.outbox.outbox import Outbox
from carrick.outbox.sqlite.migrate import migrate
from tests.ports import free_port
from tests.scenario.processes import Process, until

APP = """
from carrick import Outbox
outbox = Outbox.connect("sqlite:///shop.db")
outbox.channel("mail")

@outbox.handler("mail")
def send(batch): ...
"""


def call(port: int, token: str) -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/drain", method="POST", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_drain_delivers_when_it_is_called_and_stops_cleanly(tmp_path: Path) -> None:
    migrate(tmp_path / "shop.db")
    (tmp_path / "shop.py").write_text(APP)
    port = free_port()
    environment = {"PORT": str(port), "ADMIN_TOKEN": "open-sesame"}
    command = ["-m", "carrick", "drain", "--app", "shop", "--serve"]
    with Outbox.connect(f"sqlite:///{tmp_path / 'shop.db'}") as outbox:
        outbox.channel("mail")
        outbox.put(channel="mail", event_type="sent", payload={"to": "ann"})
        with Process(command, tmp_path, environment) as drain:
            until(lambda: "drain.started" in drain.log, "it takes calls")
            assert call(port, "wrong")[0] == 401
            assert outbox.store.stats()[0].pending_count == 1
            status, said = call(port, "open-sesame")
            assert (status, said["failed"]) == (200, False)
            assert outbox.store.stats()[0].pending_count == 0
            assert drain.stop() == 0


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--serve"], "ADMIN_TOKEN is not set", 1),
        (["--serve", "--once"], "--once or --serve", 2),
        (["--serve", "--seconds", "0"], "--seconds 0 is out of range", 2),
    ],
)
def test_what_cannot_be_served_is_one_line(
    options: list[str],
    said: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADMIN_TOKEN", raising=False)
    assert run(["drain", "--channel", "mail", "--to", "http", *options]) == code
    assert said in capsys.readouterr().err
