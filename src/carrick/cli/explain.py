"""`carrick explain`: why one entry has not been delivered, when it will be tried, and its story."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from carrick import wiring
from carrick.cli.printing import AsJson, print_json, print_line, print_table
from carrick.entry import Standing
from carrick.outbox.explain import explain as explained
from carrick.outbox.story import story_of
from carrick.settings import read_settings


def explain(entry_id: UUID, /, *, as_json: AsJson = False, database: str | None = None) -> int:
    """Say in one sentence why an entry has not been delivered and when it will be tried; then tell its story.

    Parameters
    ----------
    entry_id
        The entry's id.
    as_json
        Print JSON for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    with wiring.opened_store(database or read_settings().database_url) as store:
        standing = store.standing(entry_id)
    if as_json:
        print_json(_answer(standing))
        return 0
    print_line(explained(standing).sentence)
    rows = [(one.at or "time not known", one.event, one.detail) for one in story_of(standing)]
    print_table(f"Entry {entry_id}", ("at", "what", "detail"), rows, empty="")
    return 0


def _answer(standing: Standing) -> dict[str, Any]:
    """`until` is there when it changes by itself and it is known when."""
    why = explained(standing)
    answer: dict[str, Any] = {"id": standing.id, "state": standing.state, "reason": why.reason}
    answer["sentence"] = why.sentence
    if why.until is not None:
        answer["until"] = why.until
    return {**answer, "story": story_of(standing)}
