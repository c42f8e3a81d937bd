"""What an HTTP answer means: status, headers and body as a report. Pure; the time is passed in.

Only an answer that says what became of each event is a success, and only what the destination says in its own words is
its refusal or failure. Whatever else a network may answer in its place (a captive portal's page, a proxy's error) is
taken for neither.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from carrick.entry import Outcome
from carrick.sinks.own_words import own_words
from carrick.sinks.sink import Refused, Report, Results, Unavailable

LIMIT_BYTES = 1024 * 1024
"""How much of an answer is read, and how large it may become when it is unpacked."""
LONGEST_PAUSE_SECONDS = 86_400.0
LONGEST_TEXT = 300
TOO_LARGE = 413
PROXY_AUTHENTICATION = 407

# What a status means; docs/reference/http-sink.md has the same table. What the destination refuses or fails at counts
# only in its own words. Any other status, and what a stranger says with these, closes a gate and spends nothing.

REFUSES = frozenset((400, 409, 413, 415, 422))
FAILS = frozenset((500, 501, 505))
NOT_YOU = {
    401: "does not accept the credentials",
    403: "does not allow this sender",
    404: "knows no such address",
    405: "accepts no batches at this address",
    410: "has given up this address",
}
NOT_NOW = {
    408: "waited too long for the request",
    425: "is not ready yet",
    429: "asks for fewer requests",
    502: "cannot be reached by its gateway",
    503: "is not available",
    504: "did not answer its gateway in time",
}

DELIVERED = Outcome.delivered()

Speaker = Literal["destination", "nobody", "stranger"]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Fault(msgspec.Struct, frozen=True):
    """What the destination says about one event that it did not take."""

    event_id: UUID
    error: Any
    retryable: bool | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The expected form of an answer."""

    accepted: Count
    duplicated: Count
    rejected: Count
    errors: list[Fault]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer. `headers` are found by their lower-case names.

    `body` is as it came; None: longer than the limit, or broken off. `secrets` are ours: where the answer repeats one,
    it is not passed on.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    secrets: Sequence[str] = ()

    @property
    def code(self) -> str:
        return f"http_{self.status}"

    @property
    def encoding(self) -> str:
        return self.headers.get("content-encoding", "").strip().lower()

    def plain(self, text: str) -> str:
        """Text of the answer as one line that may be shown: printable, not too long, without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        printable = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST_TEXT])
        line = " ".join(printable.split())
        return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"


class NotExpected(Exception):
    """The answer is not of the expected form; the text says how."""


_verdicts = msgspec.json.Decoder(Verdict)


def report_of(answer: Answer, sent: Sequence[UUID], *, now: datetime, idempotent: bool = True) -> Report:
    """What the answer to a batch of these entries means. `now` is used only where the answer has no date of its own."""
    status = answer.status
    if 200 <= status < 300:
        return _successful(answer, sent, idempotent=idempotent)
    if status in NOT_YOU:
        return Unavailable(code=answer.code, message=_told(f"the destination {NOT_YOU[status]}", answer))
    if status in NOT_NOW:
        return _not_now(answer, now, idempotent=idempotent)
    speaker = _speaker(answer)
    if status in REFUSES and speaker == "destination":
        message = _told(f"the destination refused the batch with {status}", answer)
        return Refused(code=answer.code, message=message, too_large=status == TOO_LARGE)
    if status in FAILS and speaker != "stranger":
        message = _told(f"the destination failed with {status}", answer)
        failed = Outcome.retry(after=pause_of(answer, now), code=answer.code, message=message)
        return Results(outcomes=dict.fromkeys(sent, failed))
    return Unavailable(
        code=answer.code,
        message=_elsewhere(answer) if 300 <= status < 400 else _told(_strange(status, speaker), answer),
        unsure=not idempotent and not 400 <= status < 500,
        too_large=status == TOO_LARGE,
    )


def pause_of(answer: Answer, now: datetime) -> float | None:
    """How many seconds the answer asks to be left alone; None when it does not say, or says it in no known form."""
    return retry_after(answer.headers.get("retry-after"), answer.headers.get("date"), now)


def retry_after(value: str | None, date: str | None, now: datetime) -> float | None:
    """The seconds that Retry-After stands for, from 0 to a day.

    A point in time is compared with the answer's own date, so that it means the same whatever the clock here says.
    """
    text = (value or "").strip()
    if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text):
        return _bounded(float(text))
    until = _moment(text)
    return None if until is None else _bounded((until - (_moment(date) or now)).total_seconds())


def unpacked(body: bytes, encoding: str) -> bytes:
    """The body without its content encoding. Raises NotExpected: damaged, unknown, or larger than the limit inside."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise NotExpected("its encoding is unknown")
    unpacker = zlib.decompressobj(wbits=47)  # gzip or zlib, whichever it is
    try:
        text = unpacker.decompress(body, LIMIT_BYTES + 1)
    except zlib.error:
        raise NotExpected("it is damaged") from None
    if len(text) > LIMIT_BYTES:
        raise NotExpected("it is too long")
    if not unpacker.eof:
        raise NotExpected("it is not complete")
    return text


def _successful(answer: Answer, sent: Sequence[UUID], *, idempotent: bool) -> Report:
    try:
        return Results(outcomes=_outcomes(answer, sent))
    except NotExpected as error:
        message = f"the answer {answer.status} is not that of an ingest, perhaps a captive portal: {error}"
        return Unavailable(code="unexpected_answer", message=message, unsure=not idempotent)


def _verdict(answer: Answer) -> Verdict:
    if answer.body is None:
        raise NotExpected("it is too long")
    try:
        return _verdicts.decode(unpacked(answer.body, answer.encoding))
    except msgspec.ValidationError as error:
        raise NotExpected(answer.plain(str(error))) from None
    except (ValueError, RecursionError):
        raise NotExpected("it is not JSON") from None


def _outcomes(answer: Answer, sent: Sequence[UUID]) -> dict[UUID, Outcome]:
    """One outcome for each entry. Raises NotExpected where the counts and the errors do not fit what was sent."""
    verdict = _verdict(answer)
    counted = verdict.accepted + verdict.duplicated + verdict.rejected
    if counted != len(sent):
        raise NotExpected(f"it counts {counted} events where {len(sent)} were sent")
    outcomes = dict.fromkeys(sent, DELIVERED)
    if not verdict.errors and not verdict.rejected:
        return outcomes
    faults = {fault.event_id: fault for fault in verdict.errors}
    if not len(faults) == len(verdict.errors) == verdict.rejected:
        raise NotExpected(f"it names {len(faults)} events where it rejects {verdict.rejected}")
    if not faults.keys() <= outcomes.keys():
        raise NotExpected("it names an event that was not sent")
    return outcomes | {event_id: _outcome(fault, answer) for event_id, fault in faults.items()}


def _outcome(fault: Fault, answer: Answer) -> Outcome:
    error = fault.error if isinstance(fault.error, str) else msgspec.json.encode(fault.error).decode()
    text = answer.plain(error)
    if fault.retryable:
        return Outcome.retry(code="not_accepted", message=text)
    return Outcome.rejected(text, code="rejected")


def _not_now(answer: Answer, now: datetime, *, idempotent: bool) -> Unavailable:
    """429 and 503 may say until when. No time at all is no help: then the breaker's backoff counts, not a busy loop."""
    seconds = (pause_of(answer, now) or None) if answer.status in (429, 503) else None
    return Unavailable(
        code=answer.code,
        message=_told(f"the destination {NOT_NOW[answer.status]}", answer),
        seconds=seconds,
        unsure=not idempotent and seconds is None and answer.status != 429,
    )


def _speaker(answer: Answer) -> Speaker:
    """Whose words the answer is in. What is not there whole is taken for a stranger's."""
    try:
        text = None if answer.body is None else unpacked(answer.body, answer.encoding)
    except NotExpected:
        return "stranger"
    if text is None or own_words(text) is None:
        return "stranger"
    return "destination" if text.strip() else "nobody"


def _strange(status: int, speaker: Speaker) -> str:
    """About an answer that says nothing of the events."""
    if status == PROXY_AUTHENTICATION:
        return "the proxy does not accept the credentials of CLOUD_PROXY"
    if speaker == "destination":
        return f"the destination answers {status}, which says nothing of the events"
    return f"{status} came back, and not in the destination's own words: a proxy, a firewall or a captive portal"


def _elsewhere(answer: Answer) -> str:
    """About a redirect: where it leads, without the path, which may be long or secret."""
    found = re.match(r"https?://[^/?#@\s]+(?=[/?#]|$)", answer.headers.get("location", ""))
    to = f" to {answer.plain(found[0])}" if found else ""
    return f"the answer {answer.status} leads elsewhere{to}: a captive portal, or a wrong address; it is not followed"


def _told(what: str, answer: Answer) -> str:
    """What happened, and what the destination says about it."""
    try:
        text = answer.plain(unpacked(answer.body or b"", answer.encoding).decode(errors="replace"))
    except NotExpected:
        text = ""
    return f"{what}: {text}" if text else what


def _moment(text: str | None) -> datetime | None:
    """An HTTP date in any of its three forms."""
    try:
        moment = parsedate_to_datetime(text or "")
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS)
