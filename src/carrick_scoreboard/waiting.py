"""Why points are not in OSM yet, in words that a leader understands, and when they will be tried again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

import msgspec

from carrick.entry import Gate
from carrick_scoreboard.holding import leader_scope, section_scope
from carrick_scoreboard.store.scores import Update

Reason = Literal[
    "sending",
    "waiting",
    "not_due",
    "unsure",
    "rate_limited",
    "auth_revoked",
    "osm_unavailable",
    "service_blocked",
    "in_doubt",
    "needs_review",
    "rejected",
]


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why an update waits; `retry_at` where that is known. A temporary reason goes away by itself."""

    reason: Reason
    message: str
    retry_at: datetime | None = None

    @property
    def is_temporary(self) -> bool:
        return self.reason not in ("in_doubt", "needs_review", "rejected")


BY_CODE: Mapping[str, tuple[Reason, str]] = {
    "rate_limited": ("rate_limited", "OSM asks us to wait a while. The points will be applied by themselves."),
    "auth_revoked": ("auth_revoked", "OSM wants you to sign in again. The points wait until you do."),
    "service_blocked": ("service_blocked", "OSM has blocked this service. The points wait until that is resolved."),
    "misconfigured": ("service_blocked", "OSM does not accept this service. The points wait until that is resolved."),
    "section_denied": (
        "osm_unavailable",
        "OSM does not show us this section: {said}. We try again, or you discard them.",
    ),
    "refused": ("osm_unavailable", "OSM does not take your points: {said}. We try again."),
    "osm_unreachable": ("osm_unavailable", "OSM cannot be reached. The points will be applied when it is back."),
    "osm_unavailable": ("osm_unavailable", "OSM does not work at the moment. The points will be applied later."),
}
"""What the code at the beginning of a gate's reason means for a leader; `{said}` is what follows it."""


def why(update: Update, gates: Iterable[Gate], now: datetime) -> Why:
    """Why that update waits."""
    if update.state in (None, "dead"):
        return _dead(update)
    if update.state == "claimed":
        return Why(reason="sending", message="On its way to OSM.")
    gate = _gate_of(update, gates)
    if gate is not None:
        return gate
    due = update.next_attempt_at if update.next_attempt_at is not None and update.next_attempt_at > now else None
    if update.is_open:
        then = "discard them if it has not" if update.given_up else "try again"
        return Why(reason="unsure", message=f"OSM did not answer. We make sure before we {then}.", retry_at=due)
    if update.attempt_count:
        said = update.last_error_message or "OSM did not take the points"
        return Why(reason="osm_unavailable", message=f"{said}. We try again.", retry_at=due)
    if due is not None:
        return Why(reason="not_due", message="Waits a moment for what others send.", retry_at=due)
    return Why(reason="waiting", message="Will be sent to OSM in a moment.")


def _dead(update: Update) -> Why:
    if update.is_open:
        message = "Nobody knows yet whether OSM has these points. Whatever you choose, we look first."
        return Why(reason="in_doubt", message=message)
    if update.found is not None:
        return Why(
            reason="needs_review",
            message=f"OSM has {update.found} points, where we expected {update.target} or {update.base}. "
            "Somebody else may have changed them: apply yours anyway, or discard them.",
        )
    said = update.last_error_message or "OSM did not take the points"
    return Why(reason="rejected", message=f"{said}.")


def _gate_of(update: Update, gates: Iterable[Gate]) -> Why | None:
    """The closed gate that holds it."""
    scopes = ("*", section_scope(update.section_id), leader_scope(update.osm_user_id))
    for gate in gates:
        if gate.scope in scopes:
            code, _, said = gate.reason.partition(": ")
            if code not in BY_CODE:
                return Why(
                    reason="osm_unavailable",
                    message=f"Held by the operator: {gate.reason}.",
                    retry_at=gate.closed_until,
                )
            reason, message = BY_CODE[code]
            return Why(reason=reason, message=message.format(said=said), retry_at=gate.closed_until)
    return None
