"""`carrick status`, `dlq`, `gate` and `drain`: what they do and what they print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from carrick.cli import run
from carrick.entry import Outcome, State
from carrick.errors import EntryNotFound
from carrick.outbox.channel import Channel
from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.store import SqliteStore
from carrick.testing.samples import claim, finish_each, put, put_run, sample, states
from tests.gauges import count_nothing

APP = """
from carrick import Outbox, Outcome, Reject, Retry
outbox = Outbox.connect("sqlite:///{path}")
outbox.channel("things")
outbox.channel("others")

@outbox.handler("things")
def send(batch):
    if any(entry.payload == b'"bad"' for entry in batch):
        raise Reject("no good")

@outbox.handler("others")
async def send_others(batch):
    raise Retry(after=60)
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "outbox.db"
    migrate(path)
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{path}")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    store.declare(Channel(name="things"))
    yield store
    store.close()


def dead(store: SqliteStore, count: int) -> list[str]:
    """That many dead entries; their ids, the oldest first."""
    made = put_run(store, count)
    finish_each(store, claim(store), Outcome.rejected("no such device", code="http_422"))
    return [str(entry_id) for entry_id in made]


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_status_shows_every_channel(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    put_run(store, 3)
    store.close_gate("things", "tenant:acme", None, "asked to wait")
    assert run(["status"]) == 0
    out = printed(capsys)
    assert "things" in out
    assert "asked to wait" in out
    assert "until opened" in out


def test_status_as_json_is_for_scripts(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    put_run(store, 3)
    assert run(["status", "--json"]) == 0
    (channel,) = json.loads(printed(capsys))["channels"]
    assert (channel["channel"], channel["pending_count"]) == ("things", 3)


def test_status_says_about_where_it_estimates(
    store: SqliteStore, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.put_many([sample() for _ in range(1_234)])
    assert run(["status"]) == 0
    assert "1,234" in printed(capsys)
    count_nothing(path)
    assert run(["status"]) == 0
    said = printed(capsys)  # a narrow terminal has them on two lines
    assert "about" in said
    assert "1,230" in said
    assert run(["status", "--json"]) == 0
    (channel,) = json.loads(printed(capsys))["channels"]
    assert "pending_count" in channel["approximate"]
    assert "dead_count" not in channel["approximate"]


def test_status_without_a_schema_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/nothing.db")
    assert run(["status"]) == 1
    assert "carrick migrate" in capsys.readouterr().err


def test_dead_entries_are_listed_page_by_page(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    ids = dead(store, 5)
    assert run(["dlq", "list", "things", "--limit", "2", "--json"]) == 0
    page = json.loads(printed(capsys))
    assert [line["id"] for line in page["entries"]] == ids[:2]
    assert run(["dlq", "list", "things", "--after", page["next"]]) == 0
    out = printed(capsys)
    assert all(entry_id in out.replace("\n", "") or entry_id[:8] in out for entry_id in ids[2:])
    assert "rejected" in out


def test_an_empty_list_says_so(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    del store
    assert run(["dlq", "list", "things"]) == 0
    assert printed(capsys) == "No entry of things is dead.\n"


def test_one_entry_is_explained(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    (entry_id,) = dead(store, 1)
    assert run(["dlq", "show", entry_id]) == 0
    assert "no such device" in printed(capsys)
    assert run(["dlq", "show", entry_id, "--json"]) == 0
    assert json.loads(printed(capsys))["dlq_reason"] == "rejected"
    assert run(["dlq", "show", str(uuid4())]) == 1


def test_redrive_wants_ids_or_all(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    ids = dead(store, 3)
    assert run(["dlq", "redrive", "things"]) == 2
    assert run(["dlq", "redrive", "things", "--all", "--dry-run"]) == 0
    assert printed(capsys) == "would be redriven: 3\n"
    assert run(["dlq", "redrive", "things", ids[0], "--spread", "0"]) == 0
    assert printed(capsys) == "redriven: 1\n"
    assert run(["dlq", "redrive", "things", "--all", "--limit", "1"]) == 0
    assert printed(capsys) == "redriven: 1\n"
    assert run(["dlq", "redrive", "things", "--all", "--dry-run", "--json"]) == 0
    assert json.loads(printed(capsys)) == {"redriven": 1, "dry_run": True}
    assert run(["dlq", "discard", "things", ids[-1], "--json"]) == 0
    assert json.loads(printed(capsys)) == {"discarded": 1, "dry_run": False}


def test_all_dead_entries_of_a_reason_are_counted_and_discarded(
    store: SqliteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = dead(store, 3)
    assert run(["dlq", "discard", "things"]) == 2
    assert run(["dlq", "discard", "things", ids[0], "--reason", "rejected"]) == 2
    assert run(["dlq", "discard", "things", "--all", "--reason", "rejected", "--dry-run"]) == 0
    assert printed(capsys) == "would be discarded: 3\n"
    assert run(["dlq", "discard", "things", "--all", "--reason", "evicted"]) == 0
    assert printed(capsys) == "discarded: 0\n"
    assert run(["dlq", "discard", "things", "--all", "--limit", "2"]) == 0
    assert printed(capsys) == "discarded: 2\n"
    assert [str(line.id) for line in store.entries("things", state=State.DEAD).lines] == ids[2:]


@pytest.mark.parametrize("command", ["redrive", "discard"])
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
@pytest.mark.parametrize("limit", ["0", "-1", "9999999999"])
def test_a_limit_that_is_none_is_refused_by_the_name_of_its_option(
    store: SqliteStore, capsys: pytest.CaptureFixture[str], command: str, dry: list[str], limit: str
) -> None:
    dead(store, 1)
    assert run(["dlq", command, "things", "--all", "--limit", limit, *dry]) == 1
    assert capsys.readouterr() == (
        "",
        f"carrick: --limit: {limit} is out of range; accepted: 1 to 2147483647\n",
    )
    assert len(store.entries("things", state=State.DEAD).lines) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dlq", "list", "things", "--limit", "0"], "--limit: 0 is out of range; accepted: 1 to 1000"),
        (["dlq", "list", "things", "--after", "nonsense"], "--after: "),
        (
            ["dlq", "redrive", "things", "--all", "--spread", "-1"],
            "--spread: -1.0 is out of range; accepted: 0 or more",
        ),
        (["dlq", "redrive", "things", "--all", "--spread", "1e99"], "--spread: 1e+99 is out of range; accepted: 0 to"),
        (["gate", "close", "things", "--seconds", "-1"], "--seconds: -1.0 is out of range; accepted: 0 or more"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_option(
    store: SqliteStore, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    del store
    assert run(arguments) == 1
    assert capsys.readouterr().err.startswith(f"carrick: {says}")


def test_discard_removes_dead_entries_only(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    (gone, kept) = dead(store, 2)
    waiting = put(store)
    assert run(["dlq", "discard", "things", gone, str(waiting)]) == 0
    assert printed(capsys) == "discarded: 1\n"
    assert [str(line.id) for line in store.entries("things", state=State.DEAD).lines] == [kept]
    assert states(store, [waiting]) == [State.PENDING]


def test_gates_are_closed_listed_and_opened(store: SqliteStore, capsys: pytest.CaptureFixture[str]) -> None:
    del store
    assert run(["gate", "close", "things", "tenant:acme", "--seconds", "60", "--reason", "they asked"]) == 0
    assert printed(capsys) == "closed: things tenant:acme for 60 seconds\n"
    assert run(["gate", "list", "--json"]) == 0
    (gate,) = json.loads(printed(capsys))["gates"]
    assert (gate["scope"], gate["reason"]) == ("tenant:acme", "they asked")
    assert run(["gate", "open", "things", "tenant:acme"]) == 0
    assert printed(capsys) == "open: things tenant:acme\n"
    assert run(["gate", "list"]) == 0
    assert printed(capsys) == "No gate is closed.\n"


@pytest.mark.parametrize(
    "arguments",
    [["close", "nowhere"], ["list", "--channel", "nowhere"], ["close", "things", "team:a"], ["open", "things", "a b"]],
)
def test_a_wrong_gate_is_one_line(store: SqliteStore, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    del store
    assert run(["gate", *arguments]) == 1
    assert "accepted:" in capsys.readouterr().err


def application(tmp_path: Path, path: Path, name: str) -> str:
    (tmp_path / f"{name}.py").write_text(APP.format(path=path))
    return name


def test_drain_once_runs_the_handlers_of_an_application(
    tmp_path: Path, path: Path, store: SqliteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    good = put_run(store, 3)
    (bad,) = put_run(store, 1, payload=b'"bad"')
    app = application(tmp_path, path, "shop_one")
    assert run(["drain", "--app", app, "--channel", "things", "--once"]) == 1
    assert printed(capsys) == "things: claimed 4, delivered 3, retried 0, dead 1, released 0, held 0, troubled 0\n"
    assert states(store, [*good, bad]) == [State.DELIVERED] * 3 + [State.DEAD]


def test_drain_and_prune_take_what_a_channel_leaves_open_from_the_environment(
    path: Path, store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application(tmp_path, path, "shop_of_settings")
    monkeypatch.setenv("OUTBOX_MAX_ATTEMPTS", "1")
    store.declare(Channel(name="others", said=()))
    entry_id = put(store, "others")
    assert run(["drain", "--app", app, "--channel", "others", "--once"]) == 1
    assert store.standing(entry_id).dlq_reason == "max_attempts"
    monkeypatch.setenv("OUTBOX_DEAD_RETENTION_DAYS", "0")
    assert run(["prune", "--channel", "others"]) == 0
    with pytest.raises(EntryNotFound):
        store.standing(entry_id)


def test_drain_once_ends_well_when_nothing_is_left(
    tmp_path: Path, path: Path, store: SqliteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    put_run(store, 3)
    app = application(tmp_path, path, "shop_two")
    assert run(["drain", "--app", app, "--once", "--json"]) == 0
    report = json.loads(printed(capsys))
    assert (report["channels"]["things"]["delivered"], report["failed"]) == (3, False)
    assert set(report["channels"]) == {"others", "things"}


NO_TOPICS = ("", "{x}", "{event_type", "a b")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "--to kafka"),
        (["--to", "kafka"], 2, "--channel"),
        (["--to", "kafka", "--channel", "things"], 1, "KAFKA_BOOTSTRAP_SERVERS"),
        (["--to", "http", "--channel", "things"], 1, "CLOUD_INGESTION_URL"),
        (["--to", "http", "--channel", "nowhere", "--url", "http://127.0.0.1:9/batch"], 1, "unknown channel"),
        (["--app", "no.such.module"], 1, "no module"),
        (["--to", "kafka", "--app", "x"], 2, "--app"),
        *((["--to", "kafka", "--channel", "things", "--topic", topic], 2, "--topic: ") for topic in NO_TOPICS),
        (["--to", "http", "--channel", "things", "--url", "ftp://cloud"], 2, "--url: 'ftp://cloud'"),
    ],
)
def test_a_drain_that_cannot_be_is_one_line(
    store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del store
    for variable in ("KAFKA_BOOTSTRAP_SERVERS", "CLOUD_INGESTION_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert run(["drain", "--once", *arguments]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_drain_once_to_an_endpoint_that_is_away_says_what_is_held(
    store: SqliteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = put_run(store, 2)
    url = "http://127.0.0.1:9/batch"
    assert run(["drain", "--once", "--to", "http", "--channel", "things", "--url", url]) == 1
    out = printed(capsys)
    assert out.splitlines()[-1] == "things: claimed 2, delivered 0, retried 0, dead 0, released 2, held 2, troubled 0"
    assert states(store, waiting) == [State.PENDING] * 2
