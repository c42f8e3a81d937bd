"""Commands that look on: `status --watch`, `prune`, `completion`, and the metrics of a drain."""

from __future__ import annotations

import json
import pty
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from os import close, read
from pathlib import Path

import pytest

from carrick import wiring
from carrick.cli import run, status
from carrick.errors import StoreUnavailable
from carrick.outbox.channel import Channel
from carrick.outbox.sqlite.store import SqliteStore
from carrick.testing import SqliteClock
from carrick.testing.samples import claim, put, put_run
from carrick_scoreboard import wiring as scoreboard
from carrick_scoreboard.store.blocks import Blocks
from tests.batches import checked, numbered, take
from tests.ports import free_port
from tests.scenario.processes import Process, until

pytestmark = pytest.mark.slow

Shown = pytest.CaptureFixture[str]
COMMAND = [sys.executable, "-m", "carrick"]
APP = """
from carrick import Outbox
outbox = Outbox.connect("sqlite:///{path}")
outbox.channel("things")

@outbox.handler("things")
def send(batch): ...
"""


@pytest.fixture
def store(sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    wiring.migrate(f"sqlite:///{sqlite_path}")
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{sqlite_path}")
    monkeypatch.chdir(tmp_path)
    with closing(SqliteStore(sqlite_path)) as store:
        store.declare(Channel(name="things"))
        yield store


def test_a_watch_for_scripts_prints_a_line_per_look_until_ctrl_c(store: SqliteStore) -> None:
    command = [*COMMAND, "status", "--watch", "--json", "--every", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert json.loads(watching.stdout.readline())["channels"][0]["pending_count"] == 0
        put_run(store, 3)
        while json.loads(watching.stdout.readline())["channels"][0]["pending_count"] != 3:
            pass
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=30) == 0
        assert watching.stderr.read() == b""


def test_a_watch_in_a_terminal_redraws_until_ctrl_c(store: SqliteStore) -> None:
    put_run(store, 3)
    ours, theirs = pty.openpty()
    command = [*COMMAND, "status", "--watch", "--every", "0.1"]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs) as watching:
        close(theirs)
        shown = b""
        while shown.count(b"things") < 3:
            shown += read(ours, 65_536)
        watching.send_signal(signal.SIGINT)
        code = watching.wait(timeout=30)
    close(ours)
    assert code == 0
    assert b"\x1b[1A" in shown  # it goes back up instead of printing on


def test_a_watch_tells_that_the_database_is_away_and_asks_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    del store
    answers = iter([StoreUnavailable("no answer"), None, KeyboardInterrupt()])
    real = status.glance

    def shaky(*given: object) -> status.Glance:
        answer = next(answers)
        if answer is not None:
            raise answer
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(status, "glance", shaky)
    assert run(["status", "--watch", "--json", "--every", "0.1"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"error": "no answer"}
    assert second["channels"][0]["channel"] == "things"


def test_a_block_by_osm_stands_above_the_channels(store: SqliteStore, sqlite_path: Path, capsys: Shown) -> None:
    del store
    with scoreboard.opened_tables(f"sqlite:///{sqlite_path}") as tables:
        Blocks(tables).note("abuse")
    assert run(["status"]) == 0
    assert capsys.readouterr().out.startswith("OSM has BLOCKED the application since ")
    assert run(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["osm_block"]["header"] == "abuse"


@pytest.mark.parametrize("every", ["0", "-1", "nan", "86400"])
def test_a_watch_looks_neither_too_often_nor_never(store: SqliteStore, every: str) -> None:
    del store
    assert run(["status", "--watch", "--every", every]) == 2


def test_prune_removes_what_is_past_its_retention_and_nothing_else(
    store: SqliteStore, sqlite_path: Path, capsys: Shown
) -> None:
    store.declare(Channel(name="others"))
    with closing(wiring.open_inbox(f"sqlite:///{sqlite_path}")) as inbox:
        take(inbox, checked(*numbered(3)))
    put_run(store, 5)
    store.finish_all(claim(store).token)
    waiting = put(store, delay_seconds=timedelta(days=300).total_seconds())
    assert run(["prune", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"channels": {"others": 0, "things": 0}, "inbox": 0}
    SqliteClock(sqlite_path).shift(100 * 86_400)
    assert run(["prune", "--channel", "others"]) == 0
    assert capsys.readouterr().out == "others: removed 0\n"
    assert run(["prune"]) == 0
    assert capsys.readouterr().out == "others: removed 0\nthings: removed 5\ninbox: removed 3\n"
    assert store.standing(waiting).state == "pending"


def test_prune_of_a_channel_that_is_not_there_is_one_line(store: SqliteStore, capsys: Shown) -> None:
    del store
    assert run(["prune", "--channel", "nowhere"]) == 1
    assert "declared channels (things)" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, capsys: Shown) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("status", "explain", "doctor", "redrive", "completion", "watch"):
        assert word in script


def test_the_completion_for_bash_is_bash(capsys: Shown) -> None:
    assert run(["completion", "bash"]) == 0
    bash = shutil.which("bash")
    assert bash is not None
    ask = "\nCOMP_WORDS=(carrick expl); COMP_CWORD=1; _carrick; echo ${COMPREPLY[@]}\n"
    answer = subprocess.run([bash], input=capsys.readouterr().out + ask, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "explain"


def test_a_shell_that_is_not_known_is_bad_usage(capsys: Shown) -> None:
    assert run(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err


def test_a_drain_serves_its_metrics(store: SqliteStore, sqlite_path: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP.format(path=sqlite_path))
    port = free_port()
    variables = {"METRICS_PORT": str(port), "PYTHONPATH": str(tmp_path)}
    with Process(["-m", "carrick", "drain", "--app", "shop"], tmp_path, variables) as draining:

        def figures() -> str:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                    return str(answer.read().decode())
            except OSError:
                return ""

        until(lambda: "carrick_store_up 1.0" in figures(), "it serves metrics")
        put_run(store, 4)
        until(lambda: 'carrick_entries_total{channel="things",outcome="delivered"} 4.0' in figures(), "they count")
        assert f"http://127.0.0.1:{port}/metrics" in draining.log
        assert draining.stop() == 0
