"""The two databases' query folders: the same names for the same operations, and a reason where one has more."""

from __future__ import annotations

from importlib.resources import files

import pytest

REASONS_FOR_SQLITE_ALONE = {
    "admit": "PostgreSQL's puts write both rows, in a function or by two COPYs",
    "channel": "PostgreSQL looks a channel up inside its functions",
    "channel_is_live": "PostgreSQL looks inside declare_channel",
    "claim_": "PostgreSQL's claim is one function; the steps stand in 0003_pick.sql and after",
    "count_backlog": "PostgreSQL counts inside its functions",
    "end_waiting": "PostgreSQL's is a function of that name",
    "expire": "PostgreSQL's release_expired is one function",
    "finish_": "PostgreSQL's finish is one function; the steps stand in 0006_finish.sql",
    "gate_end": "PostgreSQL's fail_gate answers itself",
    "held_count": "PostgreSQL's stats view counts held entries itself",
    "leases": "SQLite counts the entries of a lease from the work rows",
    "prune_": "PostgreSQL's prune is one function",
    "put_many_": "PostgreSQL has COPY for many rows",
    "put_together": "PostgreSQL commits for several sessions at once by itself",
    "put_problem": "PostgreSQL's put answers with the problem",
    "put_state": "PostgreSQL's put answers with the state",
    "redrive_": "PostgreSQL's redrive is one function",
    "rest_": "PostgreSQL's rest is one function; the steps stand in 0011_rest.sql",
    "see": "a SQLite file has its host's clock, which may be wrong for a while",
    "sizes": "PostgreSQL sums inside its functions",
    "standing_": "PostgreSQL's standing is one function",
    "turn_back": "a SQLite file has its host's clock, which may be wrong for a while",
}

REASONS_FOR_POSTGRES_ALONE = {
    "finish": "SQLite's finish is the steps finish_*",
    "health_dead_rows": "SQLite has no dead rows",
    "health_holder": "SQLite has no vacuum to hold back; its WAL file tells instead",
    "pin_plan": "SQLite has no planner that changes its mind",
    "release": "SQLite's release finishes with `released`",
    "release_expired": "SQLite's is the steps expire_*",
    "rest": "SQLite's rest is the steps rest_*",
    "take_receipt": "SQLite has one writer: nobody takes a key meanwhile",
    "stir": "SQLite wakes relays by the file's data version",
}


def names(backend: str) -> set[str]:
    folder = files(f"carrick.outbox.{backend}") / "queries"
    return {file.name.removesuffix(".sql") for file in folder.iterdir() if file.name.endswith(".sql")}


def without_reason(extra: set[str], reasons: dict[str, str]) -> list[str]:
    return sorted(name for name in extra if not any(name == reason or name.startswith(reason) for reason in reasons))


def test_the_folders_differ_only_for_a_listed_reason() -> None:
    sqlite, postgres = names("sqlite"), names("postgres")
    assert without_reason(sqlite - postgres, REASONS_FOR_SQLITE_ALONE) == []
    assert without_reason(postgres - sqlite, REASONS_FOR_POSTGRES_ALONE) == []


def test_no_listed_reason_is_left_without_a_query() -> None:
    for own, other, reasons in (
        (names("sqlite"), names("postgres"), REASONS_FOR_SQLITE_ALONE),
        (names("postgres"), names("sqlite"), REASONS_FOR_POSTGRES_ALONE),
    ):
        assert [reason for reason in reasons if not any(name.startswith(reason) for name in own - other)] == []


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_every_query_opens_with_a_comment_that_says_what_it_does(backend: str) -> None:
    folder = files(f"carrick.outbox.{backend}") / "queries"
    silent = [file.name for file in folder.iterdir() if not file.read_text().startswith("-- ")]
    assert silent == []
