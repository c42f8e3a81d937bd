"""What a channel may declare."""

from __future__ import annotations

from typing import Any

import pytest

from carrick.entry import State
from carrick.errors import InvalidInput, UnknownState
from carrick.outbox.channel import Channel


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a b"),
        ("name", "x" * 101),
        ("name", "naïve"),
        ("batch_rows", 0),
        ("batch_rows", -5),
        ("batch_rows", 10**9),
        ("batch_bytes", 0),
        ("lease_seconds", 0),
        ("lease_seconds", 10**6),
        ("max_attempts", 0),
        ("backoff_base_seconds", float("nan")),
        ("backoff_cap_seconds", 0.5),
        ("max_payload_bytes", 1),
        ("max_backlog_bytes", 0),
        ("retention_days", -1),
        ("dead_retention_days", float("inf")),
        ("remember_keys_days", -0.1),
    ],
)
def test_an_absurd_option_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        Channel(**{"name": "c", field: value})
    assert refused.value.field == field


def test_states_are_known_by_the_names_of_other_outboxes() -> None:
    assert [
        State.parse(name) for name in ("acked", "dlq", "sending", "auth_revoked", "completed", "failed", "processing")
    ] == [
        State.DELIVERED,
        State.DEAD,
        State.CLAIMED,
        State.PENDING,
        State.DELIVERED,
        State.DEAD,
        State.CLAIMED,
    ]


def test_an_unknown_state_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownState, match="accepted: .*acked.*pending"):
        State.parse("gone")
