"""One sentence for every place an entry can be in (G10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import Gate, Standing, State
from carrick.outbox.explain import explain

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
HEAD = UUID(int=7)


def standing(**facts: Any) -> Standing:
    usual: dict[str, Any] = dict.fromkeys(Standing.__struct_fields__)
    usual |= {
        "id": UUID(int=1),
        "now": NOW,
        "channel": "billing",
        "tenant_id": "t",
        "event_type": "e",
        "state": State.PENDING,
        "created_at": NOW,
        "attempt_count": 0,
        "crash_count": 0,
        "next_attempt_at": NOW,
        "frozen": False,
        "group_held": False,
        "rank_ahead": 0,
    }
    return Standing(**usual | facts)


def gate(scope: str, until: datetime | None) -> Gate:
    return Gate(channel="billing", scope=scope, closed_until=until, reason="login revoked", consecutive_failures=1)


@pytest.mark.parametrize(
    ("facts", "reason", "says", "until"),
    [
        ({"state": State.DELIVERED, "delivered_at": NOW, "attempt_count": 1}, "delivered", "after 1 attempt.", None),
        (
            {"state": State.CLAIMED, "claimed_by": "w1", "claimed_at": NOW, "lease_expires_at": LATER},
            "claimed",
            "Claimed by w1",
            LATER,
        ),
        (
            {"state": State.DEAD, "failed_at": NOW, "dlq_reason": "max_attempts", "attempt_count": 10},
            "dead",
            "all 10 attempts were spent",
            None,
        ),
        (
            {"state": State.DEAD, "failed_at": NOW, "dlq_reason": "rejected", "last_error_code": "422"},
            "dead",
            "rejected it (422)",
            None,
        ),
        (
            {"state": State.DEAD, "failed_at": NOW, "dlq_reason": "crash_loop", "crash_count": 5},
            "dead",
            "5 workers died",
            None,
        ),
        ({"state": State.DEAD, "failed_at": NOW, "dlq_reason": "evicted"}, "dead", "the channel was full", None),
        ({"state": State.DEAD, "failed_at": NOW, "dlq_reason": "odd"}, "dead", "reason 'odd'", None),
        (
            {"gate": gate("*", LATER)},
            "held",
            "the gate of channel 'billing' is closed until 2026-05-01T12:05:00",
            LATER,
        ),
        (
            {"gate": gate("principal:ann", None)},
            "held",
            "principal 'ann' is closed until somebody opens it (login revoked)",
            None,
        ),
        ({"gate": gate("tenant:x", LATER)}, "held", "tenant 'x'", LATER),
        ({"group_key": "g", "group_held": True}, "group_claimed", "other entries of group 'g'", None),
        ({"group_key": "g", "blocked_by": HEAD}, "behind_head", str(HEAD), None),
        ({"next_attempt_at": LATER}, "not_due", "Not due before 2026-05-01T12:05:00", LATER),
        (
            {"next_attempt_at": LATER, "attempt_count": 2, "last_error_code": "500"},
            "backoff",
            "Attempt 2 failed (500)",
            LATER,
        ),
        ({"group_key": "g", "group_due_at": LATER}, "debounced", "collected until", LATER),
        ({"frozen": True}, "unsure", "may or may not have happened", None),
        ({"rank_ahead": 1}, "in_turn", "1 entry of its tenant", None),
        ({"rank_ahead": 1000}, "in_turn", "1000 or more entries", None),
        ({}, "due", "Due now", None),
    ],
)
def test_each_reason_has_its_sentence(facts: dict[str, Any], reason: str, says: str, until: datetime | None) -> None:
    explanation = explain(standing(**facts))
    assert (explanation.reason, explanation.until) == (reason, until)
    assert says in explanation.sentence
    assert explanation.sentence.endswith(".")


def test_a_closed_gate_explains_more_than_a_backoff() -> None:
    assert explain(standing(gate=gate("*", LATER), next_attempt_at=LATER, attempt_count=3)).reason == "held"
