"""Why points wait, in words: one test per reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import Gate
from carrick_scoreboard.store.scores import Update
from carrick_scoreboard.waiting import why

NOW = datetime(2026, 3, 2, 18, 30, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


def update(**fields: Any) -> Update:
    usual: dict[str, Any] = {
        "id": 1,
        "entry_id": UUID(int=1),
        "submission_id": 1,
        "osm_user_id": 7,
        "section_id": 40104,
        "patrol_id": "72699",
        "patrol_name": "Eagles",
        "points": 5,
        "undo_of": None,
        "created_at": NOW,
        "applied_at": None,
        "previous_score": None,
        "new_score": None,
        "discarded_at": None,
        "state": "pending",
        "attempt_count": 0,
    }
    return Update(**{**usual, **fields})


def gate(scope: str, reason: str, until: datetime | None = LATER) -> Gate:
    return Gate(channel="osm-scores", scope=scope, closed_until=until, reason=reason, consecutive_failures=1)


@pytest.mark.parametrize(
    ("fields", "reason", "retry_at"),
    [
        ({}, "waiting", None),
        ({"state": "claimed"}, "sending", None),
        ({"next_attempt_at": LATER}, "not_due", LATER),
        ({"next_attempt_at": NOW - timedelta(1)}, "waiting", None),
        ({"write_id": "w", "base": 10, "target": 15, "next_attempt_at": LATER, "attempt_count": 1}, "unsure", LATER),
        ({"attempt_count": 2, "next_attempt_at": LATER, "last_error_message": "OSM failed"}, "osm_unavailable", LATER),
        ({"state": "dead", "last_error_code": "refused"}, "rejected", None),
        ({"state": None}, "rejected", None),
        (
            {"state": "dead", "last_error_code": "needs_review", "write_id": "w", "base": 1, "target": 2, "found": 3},
            "needs_review",
            None,
        ),
        ({"state": "dead", "last_error_code": "unsure", "write_id": "w", "base": 1, "target": 2}, "in_doubt", None),
        ({"state": "dead", "write_id": "w", "base": 1, "target": 2, "found": 3}, "needs_review", None),
    ],
)
def test_the_state_of_an_update_tells_why_it_waits(
    fields: dict[str, Any], reason: str, retry_at: datetime | None
) -> None:
    said = why(update(**fields), [], NOW)
    assert (said.reason, said.retry_at) == (reason, retry_at)
    assert said.message.endswith(".")


@pytest.mark.parametrize(
    ("scope", "code", "reason"),
    [
        ("principal:7", "rate_limited", "rate_limited"),
        ("principal:7", "auth_revoked", "auth_revoked"),
        ("*", "service_blocked: OSM has blocked this application", "service_blocked"),
        ("*", "osm_unreachable: no answer", "osm_unavailable"),
        ("*", "osm_unavailable: status 503", "osm_unavailable"),
        ("principal:7", "refused: You do not have {permission}", "osm_unavailable"),
        ("tenant:40104", "camp is over", "osm_unavailable"),
    ],
)
def test_a_closed_gate_tells_why_it_waits_and_until_when(scope: str, code: str, reason: str) -> None:
    said = why(update(), [gate("principal:8", "auth_revoked"), gate(scope, code)], NOW)
    assert (said.reason, said.retry_at) == (reason, LATER)


def test_what_needs_a_person_tells_both_numbers() -> None:
    said = why(update(state="dead", write_id="w", base=10, target=15, found=17), [], NOW)
    assert "17" in said.message
    assert "15 or 10" in said.message
    assert not said.is_temporary
