"""Contacts that come with ingested events: the `contact` object of a payload, resolved when its event is stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from carrick.contacts.identity import IdentityType, check_tenant, given_identities, given_traits
from carrick.contacts.store import ContactStore, Request, Resolved
from carrick.errors import InvalidInput, MissingExtra
from carrick.outbox.statement import Statement, Steps
from carrick.outbox.wording import cleaned

log = logging.getLogger("carrick.contacts")

REFUSED = "contact.refused.v1"
MOST_PROBLEM = 500
LONG_FORM = frozenset({"identities", "traits"})

SAVEPOINT = Statement("savepoint carrick_arrival", {})
ROLLBACK = Statement("rollback to savepoint carrick_arrival", {})
RELEASE = Statement("release savepoint carrick_arrival", {})


class Arrival(msgspec.Struct, frozen=True):
    """The `contact` object of one event; None when its payload has none."""

    event_id: str
    contact: Any


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Why a contact object was not resolved. Its event is stored all the same."""

    problem: str


class Unreadable(msgspec.Struct, frozen=True):
    """Stands for a contact object that Python cannot hold; why."""

    problem: str


Arrived = Resolved | Refused | None


def contacts_in(payloads: Sequence[bytes]) -> list[Any] | None:
    """The `contact` of each JSON payload, None where there is none; None instead of the list when none has any.

    Mostly none has: then all of them are looked through at once. A name may also be written with escapes.
    """
    together = b"\n".join(payloads)
    if b'"contact"' not in together and (b"\\" not in together or b"\\u" not in together):
        return None
    found = [_contact_in(payload) for payload in payloads]
    return found if any(contact is not None for contact in found) else None


def _contact_in(payload: bytes) -> Any:
    try:
        raw = _carrying.decode(payload).contact
    except msgspec.ValidationError:  # not an object
        return None
    try:
        return _decode(raw)
    except msgspec.DecodeError as error:  # a number that is out of range
        return Unreadable(str(error))


class _Carrying(msgspec.Struct):
    contact: msgspec.Raw = msgspec.Raw(b"null")


_carrying = msgspec.json.Decoder(_Carrying)
_decode = msgspec.json.Decoder().decode


def request_of(contact: Any, region: str | None = None) -> Request:
    """What a payload's contact object asks for, in its long or its short form. Raises InvalidInput."""
    if isinstance(contact, Unreadable):
        raise InvalidInput("contact", f"cannot be read ({contact.problem})", "numbers in range")
    if not isinstance(contact, Mapping):
        raise InvalidInput("contact", f"is {type(contact).__name__}, not an object", "identities and traits")
    if "identities" in contact:
        if unknown := contact.keys() - LONG_FORM:
            raise InvalidInput("contact", f"unknown field {min(map(str, unknown))!r:.80}", "identities and traits")
        return Request(given_identities(contact["identities"], region), given_traits(contact.get("traits")))
    named = [(kind, contact[kind]) for kind in IdentityType if contact.get(kind) is not None]
    if not named:
        raise InvalidInput("contact", "has no identity", f"identities, or one of {', '.join(IdentityType)}")
    return Request(given_identities(named, region), given_traits(_short_traits(contact)))


def arrive_steps(
    store: ContactStore, tenant: str, arrivals: Sequence[Arrival], region: str | None = None
) -> Steps[list[Arrived]]:
    """Resolve the contacts of a batch of events; an answer for each, None where there is nothing to do.

    A bad contact object never fails the batch: it is logged, and told as `contact.refused.v1`. For an empty tenant it
    cannot be turned on, so nothing is resolved.
    """
    answers: list[Arrived] = [None] * len(arrivals)
    present = [place for place, arrival in enumerate(arrivals) if arrival.contact is not None]
    if not present or tenant == "" or not (yield from store.is_on_steps(check_tenant(tenant))):
        return answers
    requests: dict[int, Request] = {}
    for place in present:
        try:
            requests[place] = request_of(arrivals[place].contact, region)
        except (InvalidInput, MissingExtra) as error:
            answers[place] = yield from _refuse(store, tenant, arrivals[place], error)
    resolved = yield from _resolve_each(store, tenant, list(requests.values()))
    for place, answer in zip(requests, resolved, strict=True):
        if isinstance(answer, InvalidInput):
            answers[place] = yield from _refuse(store, tenant, arrivals[place], answer)
        else:
            answers[place] = answer
    return answers


def _resolve_each(
    store: ContactStore, tenant: str, requests: Sequence[Request]
) -> Steps[Sequence[Resolved | InvalidInput]]:
    """Resolve all together; where that is refused, each half by itself, until the one at fault stands alone."""
    if not requests:
        return []
    yield SAVEPOINT
    try:
        resolved = yield from store.resolve_many_steps(tenant, requests)
    except InvalidInput as error:
        yield ROLLBACK
        yield RELEASE
        if len(requests) == 1:
            return [error]
        yield from store.lock_many_steps(tenant, requests)  # the savepoint's are gone; halves lock out of order
        half = len(requests) // 2
        first = yield from _resolve_each(store, tenant, requests[:half])
        return [*first, *(yield from _resolve_each(store, tenant, requests[half:]))]
    yield RELEASE
    return resolved


def _refuse(store: ContactStore, tenant: str, arrival: Arrival, error: Exception) -> Steps[Refused]:
    """Log and tell what is wrong with a contact object."""
    refused = Refused(problem=cleaned(str(error), MOST_PROBLEM))
    event_id = cleaned(arrival.event_id, MOST_PROBLEM)
    log.warning("contacts.refused", extra={"tenant": tenant, "event_id": event_id, "problem": refused.problem})
    yield from store.tell_steps(tenant, REFUSED, {"event_id": event_id, "problem": refused.problem})
    return refused


def _short_traits(contact: Mapping[Any, Any]) -> Any:
    """Everything beside the identities; `traits` may hold more of them."""
    rest = {name: value for name, value in contact.items() if name not in STRONG and name != "traits"}
    more = contact.get("traits")
    if more is None:
        return rest
    return {**rest, **more} if isinstance(more, Mapping) else more


STRONG = frozenset(kind.value for kind in IdentityType)
