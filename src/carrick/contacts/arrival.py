"""Contacts that come with ingested events: the `contact` object of a payload, resolved when its event is stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from carrick.contacts.identity import IdentityType, check_tenant, given_identities, given_traits
from carrick.contacts.store import ContactStore, Request, Resolved
from carrick.errors import InvalidInput, MissingExtra
from carrick.outbox.statement import Steps
from carrick.outbox.wording import cleaned

log = logging.getLogger("carrick.contacts")

REFUSED = "contact.refused.v1"
MOST_PROBLEM = 500
LONG_FORM = frozenset({"identities", "traits"})


class Arrival(msgspec.Struct, frozen=True):
    """The `contact` object of one event; None when its payload has none."""

    event_id: str
    contact: Any


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Why a contact object was not resolved. Its event is stored all the same."""

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
        return _carrying.decode(payload).contact
    except msgspec.ValidationError:  # not an object
        return None


class _Carrying(msgspec.Struct):
    contact: Any = None


_carrying = msgspec.json.Decoder(_Carrying)


def request_of(contact: Any, region: str | None = None) -> Request:
    """What a payload's contact object asks for, in its long or its short form. Raises InvalidInput."""
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

    A bad contact object never fails the batch: it is logged, and told as `contact.refused.v1`.
    """
    check_tenant(tenant)
    answers: list[Arrived] = [None] * len(arrivals)
    present = [place for place, arrival in enumerate(arrivals) if arrival.contact is not None]
    if not present or not (yield from store.is_on_steps(tenant)):
        return answers
    requests: dict[int, Request] = {}
    for place in present:
        try:
            requests[place] = request_of(arrivals[place].contact, region)
        except (InvalidInput, MissingExtra) as error:
            answers[place] = refused = Refused(problem=cleaned(str(error), MOST_PROBLEM))
            yield from _tell_refused(store, tenant, arrivals[place], refused)
    resolved = yield from store.resolve_many_steps(tenant, list(requests.values()))
    for place, answer in zip(requests, resolved, strict=True):
        answers[place] = answer
    return answers


def _tell_refused(store: ContactStore, tenant: str, arrival: Arrival, refused: Refused) -> Steps[None]:
    event_id = cleaned(arrival.event_id, MOST_PROBLEM)
    log.warning("contacts.refused", extra={"tenant": tenant, "event_id": event_id, "problem": refused.problem})
    yield from store.tell_steps(tenant, REFUSED, {"event_id": event_id, "problem": refused.problem})


def _short_traits(contact: Mapping[Any, Any]) -> Any:
    """Everything beside the identities; `traits` may hold more of them."""
    rest = {name: value for name, value in contact.items() if name not in STRONG and name != "traits"}
    more = contact.get("traits")
    if more is None:
        return rest
    return {**rest, **more} if isinstance(more, Mapping) else more


STRONG = frozenset(kind.value for kind in IdentityType)
