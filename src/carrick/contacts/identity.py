"""What a contact may be known by, in one spelling each. Nothing here touches a database.

The strongest type comes first. External and anonymous ids are compared exactly. E-mail addresses are trimmed and their
letters A to Z lower-cased: the lower case of other letters depends on language and on the version of Unicode, and what
Python makes of them is not what every database makes of them. Phone numbers are E.164.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from carrick.contacts.phones import e164
from carrick.errors import InvalidInput
from carrick.outbox.producing import check_text, encode_object

MOST_IDENTITIES = 20
MOST_TRAIT_BYTES = 16 * 1024
MOST_EMAIL = 320

SPACE = " \t\n\r\f\v"
EMAIL = re.compile(r"[^\x00-\x20\x7f]+@[^\x00-\x20\x7f@]+")
LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}

ACCEPTED = f'1 to {MOST_IDENTITIES} of {{"type": "email", "value": "ann@example.org"}}'


class IdentityType(StrEnum):
    """The kinds of identities, the strongest first."""

    EXTERNAL_ID = "external_id"
    EMAIL = "email"
    PHONE = "phone"
    ANONYMOUS_ID = "anonymous_id"


STRENGTH = {kind: place for place, kind in enumerate(IdentityType)}


class Identity(msgspec.Struct, frozen=True):
    """One identity. `value` is as it was given, `normalised` is what counts."""

    type: IdentityType
    value: str
    normalised: str


def identity(kind: Any, value: Any, *, region: str | None = None, field: str = "identity") -> Identity:
    """An identity from what somebody gives. Raises InvalidInput, naming the field, or MissingExtra."""
    try:
        known = IdentityType(kind)
    except ValueError:
        raise InvalidInput(f"{field}.type", f"unknown type {kind!r:.80}", ", ".join(IdentityType)) from None
    place = f"{field}.value"
    match known:
        case IdentityType.EMAIL:
            shown = _email(place, value)
            return Identity(known, shown, shown.translate(LOWER))
        case IdentityType.PHONE:
            number = e164(place, check_text(place, value, empty=False), region)
            return Identity(known, number, number)
        case IdentityType.EXTERNAL_ID | IdentityType.ANONYMOUS_ID:
            exact = check_text(place, value, empty=False)
            return Identity(known, exact, exact)


def given_identities(given: Any, region: str | None = None) -> tuple[Identity, ...]:
    """The identities of one resolve: mappings or pairs of type and value. The strongest first, each once.

    Raises InvalidInput: none, too many, a bad one, or two different external ids, which no one contact has.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes | bytearray):
        raise InvalidInput("identities", f"is {type(given).__name__}, not a list", ACCEPTED)
    if not 1 <= len(given) <= MOST_IDENTITIES:
        raise InvalidInput("identities", f"has {len(given)} identities", ACCEPTED)
    unique: dict[tuple[IdentityType, str], Identity] = {}
    for place, one in enumerate(given):
        made = _one(one, region, f"identities[{place}]")
        unique.setdefault((made.type, made.normalised), made)
    ordered = sorted(unique.values(), key=lambda one: STRENGTH[one.type])
    if len(ordered) > 1 and ordered[1].type is IdentityType.EXTERNAL_ID:
        raise InvalidInput("identities", "two different external ids", "one external_id for one contact")
    return tuple(ordered)


def given_traits(traits: Any) -> bytes:
    """The traits as JSON text; none is the same as an empty object. Raises InvalidInput."""
    return b"{}" if traits is None else encode_object("traits", traits, MOST_TRAIT_BYTES)


def check_tenant(tenant: Any) -> str:
    """The tenant that everything belongs to. Raises InvalidInput."""
    return check_text("tenant", tenant, empty=False)


def _one(one: Any, region: str | None, field: str) -> Identity:
    if isinstance(one, Mapping) and one.keys() == {"type", "value"}:
        return identity(one["type"], one["value"], region=region, field=field)
    if isinstance(one, tuple | list) and len(one) == 2:
        return identity(*one, region=region, field=field)
    raise InvalidInput(field, f"{one!r:.80} is no identity", '{"type": …, "value": …}')


def _email(field: str, value: Any) -> str:
    trimmed = check_text(field, value.strip(SPACE) if isinstance(value, str) else value, empty=False, most=MOST_EMAIL)
    if not EMAIL.fullmatch(trimmed):
        raise InvalidInput(field, f"{trimmed!r:.80} is no e-mail address", "name@domain without spaces")
    return trimmed
