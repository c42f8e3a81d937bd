"""Phone numbers in one spelling: E.164, by the rules of the library that knows every country's plan."""

from __future__ import annotations

import re
from typing import Any

from carrick.errors import InvalidInput, MissingExtra

E164 = re.compile(r"\+[1-9][0-9]{6,14}")
MOST_CHARACTERS = 64
ACCEPTED = "a number with its country code, as in +44 20 7946 0958"


def e164(field: str, value: str, region: str | None) -> str:
    """The number as + and digits. One without + is read as of the region. Raises InvalidInput or MissingExtra.

    Only lengths are checked, not whether a number is in use: plans change, and a contact must not.
    """
    library = _library()
    accepted = ACCEPTED if region else f"{ACCEPTED}; without +, CONTACTS_DEFAULT_REGION must say the country"
    if len(value) > MOST_CHARACTERS:
        raise InvalidInput(field, f"has {len(value)} characters", f"at most {MOST_CHARACTERS}")
    try:
        number = library.parse(value, region)
    except library.NumberParseException as error:
        raise InvalidInput(field, f"{value!r:.80} is no phone number ({error})", accepted) from None
    if number.extension:
        raise InvalidInput(field, f"{value!r:.80} has an extension", f"{ACCEPTED}, without extension")
    text = str(library.format_number(number, library.PhoneNumberFormat.E164))
    _check_length(field, value, library.is_possible_number_with_reason(number), accepted)
    if not E164.fullmatch(text):
        raise InvalidInput(field, f"{value!r:.80} has too few or too many digits", accepted)
    return text


def _check_length(field: str, value: str, found: int, accepted: str) -> None:
    """Refuse what cannot be a whole number: with a country code before it, a local one would be somebody else's."""
    reasons = _library().ValidationResult
    if found == reasons.IS_POSSIBLE_LOCAL_ONLY:
        raise InvalidInput(field, f"{value!r:.80} has no area code", accepted)
    if found != reasons.IS_POSSIBLE:
        raise InvalidInput(field, f"{value!r:.80} has too few or too many digits", accepted)


def check_region(region: str) -> str:
    """The region, when the library knows it. Raises InvalidInput or MissingExtra."""
    if region not in _library().SUPPORTED_REGIONS:
        raise InvalidInput("default_region", f"{region!r:.80} is unknown", "a country of two letters, as in GB")
    return region


def _library() -> Any:
    try:
        import phonenumbers
    except ModuleNotFoundError as error:
        raise MissingExtra("contacts", "an identity of type phone") from error
    return phonenumbers
