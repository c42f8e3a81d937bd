"""`carrick osm`, `clients`, `keys` and `scoreboard`: what they do and what they print."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from carrick import wiring as carrick_wiring
from carrick.cli import acting, run
from carrick_scoreboard import wiring
from carrick_scoreboard.credentials import place_of
from carrick_scoreboard.osm.standing import KnownBudget, UserBlock
from carrick_scoreboard.own_keys import OwnKeys
from carrick_scoreboard.sealing import KeyRing, Unreadable, keys_in
from carrick_scoreboard.standing import block_key, budget_key
from carrick_scoreboard.store.audit import Audit
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.credentials import SealedTokens, StoredCredentials
from carrick_scoreboard.store.tables import Tables
from tests.replicas import replica

URL = "sqlite:///board.db"
ANN, BOB = 7, 8

Shown = pytest.CaptureFixture[str]


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", URL)
    for variable in ("CARRICK_SECRET_KEYS", "REDIS_URL", "OSM_CLIENT_ID", "OSM_CLIENT_SECRET"):
        monkeypatch.delenv(variable, raising=False)
    carrick_wiring.migrate(URL)
    with wiring.opened_tables(URL) as tables:
        yield tables


def save(tables: Tables, keys: KeyRing, user: int = ANN, name: str = "Ann") -> None:
    """The user has signed in, with the tokens `access USER` and `refresh USER`."""
    sealed = SealedTokens(
        keys.seal(f"access {user}", place_of(user, "access")),
        keys.seal(f"refresh {user}", place_of(user, "refresh")),
        9,
    )
    StoredCredentials(tables).save(user, name, "", sealed)


def opened(tables: Tables, keys: KeyRing, user: int = ANN) -> tuple[str, str]:
    stored = StoredCredentials(tables).get(user)
    assert stored is not None
    return (
        keys.unseal(stored.osm_access_token, place_of(user, "access")),
        keys.unseal(stored.osm_refresh_token, place_of(user, "refresh")),
    )


def fails(arguments: list[str], capsys: Shown) -> str:
    """The one line of a command that fails."""
    assert run(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_without_users_and_without_a_block_the_status_says_so(tables: Tables, capsys: Shown) -> None:
    del tables
    assert run(["osm", "status"]) == 0
    assert capsys.readouterr().out == "OSM has not blocked the application.\nNobody has signed in yet.\n"


def test_a_block_is_shown_with_since_when_why_and_what_to_do(tables: Tables, capsys: Shown) -> None:
    Blocks(tables).note("too many calls")
    block = Blocks(tables).standing()
    assert block is not None
    assert run(["osm", "status"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"BLOCKED the application since {block.blocked_at.astimezone():%Y-%m-%d %H:%M}" in said
    assert "X-Blocked: too many calls" in said
    assert "carrick osm unblock --reason" in said
    assert run(["osm", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["block"]["header"] == "too many calls"


def test_a_call_that_osm_will_end_is_shown_with_its_date(tables: Tables, capsys: Shown) -> None:
    Blocks(tables).note_ending("patrols", "2027-01-31", datetime(2027, 1, 31, tzinfo=UTC))
    assert run(["osm", "status"]) == 0
    assert "OSM will end a call: patrols, 2027-01-31." in " ".join(capsys.readouterr().out.split())


def test_the_status_shows_budgets_limits_and_sign_ins_that_have_ended(
    tables: Tables, tmp_path: Path, capsys: Shown
) -> None:
    keys = KeyRing({"k": bytes(32)})
    save(tables, keys, ANN, "Ann")
    save(tables, keys, BOB, "Bob")
    StoredCredentials(tables).revoke(BOB, 1)
    now = datetime.now(UTC)
    budget = KnownBudget(limit=1000, remaining=123, reset_at=None, last_updated=now)

    async def told() -> None:
        async with replica(tmp_path / "board.db", None) as state:
            await state.set(budget_key(ANN), msgspec.json.encode(budget), ttl=60)
            limited = UserBlock(blocked_at=now, retry_after=600)
            await state.set(block_key(ANN), msgspec.json.encode(limited), ttl=600)

    asyncio.run(told())
    assert run(["osm", "status"]) == 0
    shown = capsys.readouterr().out
    assert "123" in shown
    assert "ended" in shown
    assert run(["osm", "status", "--json"]) == 0
    look = json.loads(capsys.readouterr().out)
    ann, bob = look["users"]
    assert (ann["name"], ann["remaining"], ann["limit"], ann["revoked_at"]) == ("Ann", 123, 1000, None)
    assert ann["blocked_until"] is not None
    assert (bob["remaining"], bob["blocked_until"]) == (None, None)
    assert bob["revoked_at"] is not None
    assert "token" not in json.dumps(look)


def test_a_block_is_ended_with_a_reason_and_the_name_of_who_did_it(tables: Tables, capsys: Shown) -> None:
    Blocks(tables).note("abuse")
    assert run(["osm", "unblock", "--reason", "spoke to OSM"]) == 0
    assert capsys.readouterr().out.startswith("ended: the block since ")
    assert Blocks(tables).standing() is None
    (act,) = Audit(tables).latest("osm")
    assert (act.actor, act.detail["reason"]) == (acting.actor(), "spoke to OSM")
    assert "@" in act.actor


def test_where_nothing_is_blocked_there_is_nothing_to_end(tables: Tables, capsys: Shown) -> None:
    assert fails(["osm", "unblock", "--reason", "x"], capsys) == (
        "carrick: OSM has not blocked the application. There is nothing to end."
    )
    assert Audit(tables).latest() == []


def test_a_block_is_not_ended_without_a_reason(tables: Tables, capsys: Shown) -> None:
    Blocks(tables).note("abuse")
    assert run(["osm", "unblock"]) == 2
    assert "--reason" in capsys.readouterr().err
    for reason in ("", "  ", "a\nb"):
        assert "reason" in fails(["osm", "unblock", "--reason", reason], capsys)
    assert Blocks(tables).standing() is not None


def test_a_user_without_a_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert acting.actor().startswith("unknown@")


def test_applications_are_added_listed_rotated_and_disabled(tables: Tables, capsys: Shown) -> None:
    assert run(["clients", "list"]) == 0
    assert "carrick clients add" in capsys.readouterr().out
    assert run(["clients", "add", "matrix-1", "--comment", "the hall", "--email", "ann@example.org"]) == 0
    assert run(["clients", "rotate", "matrix-1", "matrix-2"]) == 0
    assert run(["clients", "disable", "matrix-2"]) == 0
    assert run(["clients", "disable", "matrix-2"]) == 0
    assert capsys.readouterr().out == (
        "added: matrix-1\nrotated: matrix-1 is matrix-2 now\ndisabled: matrix-2\ndisabled: matrix-2 (it was already)\n"
    )
    assert run(["clients", "list", "--json"]) == 0
    one, two = json.loads(capsys.readouterr().out)["clients"]
    assert (one["client_id"], one["replaced_by"]) == ("matrix-1", "matrix-2")
    assert (two["comment"], two["email"], two["disabled_at"] is not None) == ("the hall", "ann@example.org", True)
    assert run(["clients", "list"]) == 0
    assert "matrix-2" in capsys.readouterr().out
    assert {act.actor for act in Audit(tables).latest()} == {acting.actor()}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "a b"], "1 to 100 letters"),
        (["add", "known"], "'known' is taken"),
        (["add", "new", "--comment", "x" * 201], "comment"),
        (["disable", "nobody"], "'nobody' is not known; accepted: known"),
        (["rotate", "nobody", "new"], "'nobody' is not known"),
        (["rotate", "known", "known"], "'known' is taken"),
    ],
)
def test_what_cannot_be_done_with_an_application_is_one_line(
    tables: Tables, capsys: Shown, arguments: list[str], said: str
) -> None:
    del tables
    run(["clients", "add", "known"])
    capsys.readouterr()
    assert said in fails(["clients", *arguments], capsys)


def test_a_new_key_is_printed_as_the_variable_takes_it(capsys: Shown) -> None:
    assert run(["keys", "new"]) == 0
    ((name, key),) = keys_in([capsys.readouterr().out.strip()]).items()
    assert len(key) == 32
    assert name.isalnum()


def test_the_first_key_of_the_list_seals_everything_again(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    old, new = ("old", b"o" * 32), ("new", b"n" * 32)
    for user in range(1, 252):
        save(tables, KeyRing(dict([old])), user)
    save(tables, KeyRing(dict([new])), 900)
    listed = ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in (new, old))
    monkeypatch.setenv("CARRICK_SECRET_KEYS", listed)
    assert run(["keys", "rotate"]) == 0
    assert capsys.readouterr().out == "key new: 252 users, 251 sealed again, 1 were already\n"
    assert opened(tables, KeyRing(dict([new])), 251) == ("access 251", "refresh 251")
    assert run(["keys", "rotate", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done == {"key": "new", "users": 252, "resealed": 0, "current": 252, "unreadable": []}


def test_what_no_key_opens_is_named_and_left_as_it_is(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    lost, new = KeyRing({"lost": b"l" * 32}), b"n" * 32
    save(tables, lost, ANN)
    monkeypatch.setenv("CARRICK_SECRET_KEYS", f"new:{base64.b64encode(new).decode()}")
    assert run(["keys", "rotate"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "key new: 1 users, 0 sealed again, 0 were already\n"
    assert printed.err.startswith("carrick: not opened: users 7;")
    assert opened(tables, lost) == ("access 7", "refresh 7")


def test_the_key_file_of_an_embedded_database_is_rotated_beside_a_service_that_runs(
    tables: Tables, tmp_path: Path, capsys: Shown
) -> None:
    running = OwnKeys(tmp_path / "board.db.key")
    save(tables, running, ANN)
    before = (tmp_path / "board.db.key").read_text()
    assert run(["keys", "rotate"]) == 0
    assert "1 users, 1 sealed again" in capsys.readouterr().out
    assert opened(tables, running) == ("access 7", "refresh 7")
    with pytest.raises(Unreadable):
        opened(tables, KeyRing(keys_in(before.split())))
    assert running.newest == (tmp_path / "board.db.key").read_text().partition(":")[0]


def test_on_postgresql_without_keys_a_rotation_says_what_is_missing(
    newest_postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.delenv("CARRICK_SECRET_KEYS", raising=False)
    assert "CARRICK_SECRET_KEYS is not set" in fails(["keys", "rotate", "--database", newest_postgres_dsn], capsys)


def test_the_scoreboard_does_not_start_without_an_application_of_osm(tables: Tables, capsys: Shown) -> None:
    del tables
    assert fails(["scoreboard"], capsys).startswith("carrick: OSM_CLIENT_ID is not set; accepted: ")
