"""What the stand-in for the server holds, every call that came, and faults to order."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

PATROLS = {"72699": "Eagles", "72700": "Lions", "132322": "Wolves"}
COLOURS = {"72699": "red", "72700": "yellow"}
ROBIN = {"osmUserId": 100001, "name": "Robin Ash"}
HAZEL = {"osmUserId": 100002, "name": "Hazel Wood"}


@dataclass(frozen=True)
class Seen:
    """One call of the API, as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Hall:
    """What the server holds, and what shall go wrong. The server works on it in its thread; tests set plain values."""

    names: dict[str, str] = field(default_factory=lambda: dict(PATROLS))
    scores: dict[str, int] = field(default_factory=lambda: {"72699": 100, "72700": 80, "132322": 95})
    history: list[dict[str, Any]] = field(default_factory=list)
    pending: list[dict[str, Any]] = field(default_factory=list)
    displays: list[dict[str, Any]] = field(default_factory=list)
    boards: list[str] = field(default_factory=list)
    colours: dict[str, str] = field(default_factory=lambda: dict(COLOURS))
    sessions: dict[str, str] = field(default_factory=dict)
    answers: dict[tuple[int, str], tuple[Any, int, Any]] = field(default_factory=dict)
    calls: list[Seen] = field(default_factory=list)
    user: dict[str, Any] = field(default_factory=lambda: ROBIN)
    away: bool = False
    drop_answers: bool = False
    refusals: list[tuple[int, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    limited_until: datetime | None = None
    stale: bool = False
    holds: dict[tuple[str, str], threading.Event] = field(default_factory=dict)

    def score(self, name: str) -> int:
        """The score of the patrol with this name."""
        return self.scores[next(key for key, value in self.names.items() if value == name)]

    def submissions(self) -> list[Seen]:
        return [call for call in self.calls if call.method == "POST" and call.path.endswith("/scores")]

    def keys(self) -> list[str]:
        """The idempotency keys that arrived, in order, repeated ones too."""
        return [call.headers["X-Idempotency-Key"] for call in self.submissions()]

    def modes(self) -> list[str]:
        return [call.headers["X-Sync-Mode"] for call in self.submissions()]

    def refuse(self, status: int, error: str, message: str, *, times: int = 1, retry_after: int | None = None) -> None:
        """Answer the next submissions with this instead of taking them."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self.refusals += [(status, {"error": error, "message": message}, headers)] * times

    def hold(self, method: str, end: str) -> threading.Event:
        """Let calls whose path ends so wait, after they were noted, until the event is set."""
        return self.holds.setdefault((method, end), threading.Event())

    def held(self, method: str, path: str) -> threading.Event | None:
        """What a call must wait for."""
        return next((event for (kind, end), event in self.holds.items() if kind == method and path.endswith(end)), None)

    def expire(self) -> None:
        """Every session ends."""
        self.sessions.clear()

    def apply_pending(self) -> None:
        """OSM takes what was waiting."""
        self.limited_until = None
        for entry in self.pending[:]:
            self.pending.remove(entry)
            self.apply(entry["patrolId"], entry["points"])

    def apply(self, patrol: str, points: int) -> dict[str, Any]:
        before = self.scores[patrol]
        self.scores[patrol] = before + points
        line = {
            "id": len(self.history) + 1,
            "patrolId": patrol,
            "patrolName": self.names[patrol],
            "points": points,
            "previousScore": before,
            "newScore": before + points,
            "userName": self.user["name"],
            "createdAt": stamp(),
        }
        self.history.insert(0, line)
        return line

    def wait(self, patrol: str, points: int, reason: str = "rate_limited", **more: Any) -> dict[str, Any]:
        """Note points that OSM has not taken."""
        entry = {
            "id": uuid4().hex,
            "sectionId": 40104,
            "patrolId": patrol,
            "patrolName": self.names[patrol],
            "points": points,
            "state": "pending",
            "reason": reason,
            "message": "",
            "createdAt": stamp(),
            **more,
        }
        self.pending.append(entry)
        return entry


def stamp(moment: datetime | None = None) -> str:
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
