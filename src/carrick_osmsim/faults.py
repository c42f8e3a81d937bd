"""What can be made to go wrong with a call, once, several times or until it is cleared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from carrick_osmsim import pages
from carrick_osmsim.matching import Matching, Target
from carrick_osmsim.reply import Reply, as_html, as_json

Kind = Literal[
    "rate_limited",
    "server_error",
    "unauthorized",
    "block_page",
    "blocked_header",
    "deprecated",
    "slow",
    "never_answer",
    "apply_then_drop",
    "drop_before_apply",
    "truncated",
    "error_200",
    "err_200",
    "false_body",
    "empty_body",
    "json_as_html",
    "invalid_json",
    "wrong_structure",
    "custom",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

APPLIED: frozenset[Kind] = frozenset(
    ("deprecated", "slow", "apply_then_drop", "truncated", "json_as_html", "invalid_json", "wrong_structure")
)
"""Faults of the answer only: unless told otherwise the call does its work first."""

BLOCKING: frozenset[str] = frozenset(("block_page", "blocked_header"))
"""Faults that leave the application blocked."""

MEANINGS: dict[Kind, str] = {
    "rate_limited": "429 with Retry-After (`retry_after` seconds)",
    "server_error": "a 5xx (`status`, 500 if not given) with a page",
    "unauthorized": "401: the access token is refused",
    "block_page": "HTTP 200 with the page `Online Scout Manager (OSM): Blocked`; the application stays blocked",
    "blocked_header": "`X-Blocked` on the answer (`text`); the application stays blocked",
    "deprecated": "`X-Deprecated` on a good answer (`text`: the date); comes on top of other faults",
    "slow": "the answer comes after `seconds`; with `applied: false` the work, too, is done only then",
    "never_answer": "no answer until the caller gives up",
    "apply_then_drop": "the work is done, the connection is closed without an answer",
    "drop_before_apply": "the connection is closed, nothing is done",
    "truncated": "half of the answer, then the connection is closed",
    "error_200": 'HTTP 200 with `{"error":…}` (`text`)',
    "err_200": 'HTTP 200 with `{"err":…}` (`text`)',
    "false_body": "HTTP 200 with the body `false`",
    "empty_body": "HTTP 200 with an empty body",
    "json_as_html": "the right JSON, called text/html",
    "invalid_json": "HTTP 200 with JSON that breaks off",
    "wrong_structure": "HTTP 200 with JSON of another form",
    "custom": "`status`, `content_type`, `text` as the body, and `headers`",
}


BLOCKED = "Your application has been blocked."


class Fault(Matching, kw_only=True):
    """One fault and the calls it is for. `applied`: whether the work is done; None is what is usual for its kind."""

    kind: Kind
    applied: bool | None = None
    seconds: float = 5.0
    retry_after: int = 60
    status: int | None = None
    text: str | None = None
    content_type: str = "application/json"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    id: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.seconds <= 3600:
            raise ValueError("seconds: accepted are 0 to 3600")
        if self.retry_after < 0:
            raise ValueError("retry_after: accepted are 0 or more")
        if self.status is not None and not 200 <= self.status <= 599:
            raise ValueError("status: accepted are 200 to 599")
        if self.id:
            raise ValueError("id: is given by the simulator")
        for text in (self.content_type, *self.headers, *self.headers.values(), *self._header_text()):
            if not text.isprintable() or not text.isascii():
                raise ValueError("headers: accepted are printable ASCII names and values")

    def _header_text(self) -> list[str]:
        return [self.text or ""] if self.kind in ("blocked_header", "deprecated") else []

    @property
    def does_the_work(self) -> bool:
        """Whether the call has its effect."""
        return self.kind in APPLIED if self.applied is None else self.applied

    @property
    def blocks(self) -> bool:
        """Whether the application is blocked from this answer on."""
        return self.kind in BLOCKING


class Faults:
    """The faults that wait for calls, oldest first."""

    def __init__(self) -> None:
        self.waiting: list[Fault] = []
        self._last_id = 0

    def add(self, fault: Fault) -> Fault:
        """Make calls go wrong from now on."""
        self._last_id += 1
        fault.id = self._last_id
        self.waiting.append(fault)
        return fault

    def clear(self, fault_id: int | None = None) -> int:
        """Forget that one, or all; how many there were."""
        kept = [] if fault_id is None else [fault for fault in self.waiting if fault.id != fault_id]
        cleared = len(self.waiting) - len(kept)
        self.waiting = kept
        return cleared

    def take(self, target: Target) -> tuple[Fault | None, str | None]:
        """The fault that this call gets, if any, and the date of `X-Deprecated`, if any."""
        taken: Fault | None = None
        deprecated: str | None = None
        for fault in self.waiting:
            if not fault.fits(target):
                continue
            if fault.kind == "deprecated":
                deprecated = (fault.text or "2027-01-31") if fault.take() else deprecated
            elif taken is None and fault.take():
                taken = fault
        self.waiting = [fault for fault in self.waiting if not fault.spent]
        return taken, deprecated


def reply_of(fault: Fault, usual: Reply | None) -> Reply:
    """The answer that a fault makes; `usual` is the right one where the work was done."""
    made = _made(fault, usual)
    if usual is None:
        return msgspec.structs.replace(made, effect=f"nothing done: {fault.kind}")
    return msgspec.structs.replace(made, effect=usual.effect, applied=usual.applied)


def _made(fault: Fault, usual: Reply | None) -> Reply:
    maker = MAKERS.get(fault.kind)
    return maker(fault, usual) if maker is not None else usual or as_json([])


def as_429(seconds: int) -> Reply:
    """Too many calls: come back after so many seconds."""
    reply = as_json({"error": "Too many requests"}, 429, effect="refused: too many calls")
    told = {"Retry-After": str(seconds), "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(seconds)}
    return msgspec.structs.replace(reply, headers=told)


def unauthorized(hint: str) -> Reply:
    """401, in the words of OSM's OAuth server."""
    said = "The resource owner or authorization server denied the request."
    answer = {"error": "access_denied", "error_description": said, "hint": hint, "message": said}
    return as_json(answer, 401, effect=f"refused: {hint}")


def blocked(value: str, usual: Reply | None = None) -> Reply:
    """`X-Blocked`, on the right answer if there is one."""
    reply = usual or as_json({"error": "blocked"}, 403)
    return msgspec.structs.replace(reply, headers={**reply.headers, "X-Blocked": value})


def _sorry(fault: Fault) -> str:
    return fault.text or "Sorry, something went wrong."


MAKERS: dict[Kind, Callable[[Fault, Reply | None], Reply]] = {
    "rate_limited": lambda fault, _: as_429(fault.retry_after),
    "server_error": lambda fault, _: as_html(pages.server_error(fault.status or 500), fault.status or 500),
    "unauthorized": lambda *_: unauthorized("Access token has been revoked"),
    "block_page": lambda fault, _: as_html(pages.blocked(fault.text or BLOCKED)),
    "blocked_header": lambda fault, usual: blocked(fault.text or BLOCKED, usual),
    "error_200": lambda fault, _: as_json({"error": _sorry(fault)}),
    "err_200": lambda fault, _: as_json({"err": _sorry(fault)}),
    "false_body": lambda *_: as_json(False),
    "empty_body": lambda *_: Reply(content_type="text/html"),
    "json_as_html": lambda _, usual: msgspec.structs.replace(usual or as_json([]), content_type="text/html"),
    "invalid_json": lambda *_: Reply(body=b'{"status":true,"data":{"user_id":'),
    "wrong_structure": lambda *_: as_json({"items": [{"identifier": "patrolid"}], "meta": 1}),
    "custom": lambda fault, _: Reply(
        status=fault.status or 200,
        body=(fault.text or "").encode(),
        content_type=fault.content_type,
        headers=fault.headers,
    ),
}
"""How an answer is made that is not the right one."""
