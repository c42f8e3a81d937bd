"""The codes that people type: eight letters that nobody mistakes for others and that spell no words. Pure."""

from __future__ import annotations

from collections.abc import Callable

ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
LENGTH = 8
MAX_TYPED = 40
"""What is longer was never meant as a code."""


def new_user_code(choice: Callable[[str], str]) -> str:
    """Eight letters, each picked by `choice`."""
    return "".join(choice(ALPHABET) for _ in range(LENGTH))


def shown(user_code: str) -> str:
    """As people see it: XXXX-XXXX."""
    return f"{user_code[: LENGTH // 2]}-{user_code[LENGTH // 2 :]}"


def read_user_code(typed: str) -> str | None:
    """The eight letters, typed in any case, with spaces and dashes anywhere; None for what is no code."""
    letters = "".join(letter for letter in typed[: MAX_TYPED + 1] if not _is_gap(letter))
    fits = len(typed) <= MAX_TYPED and len(letters) == LENGTH and set(letters) <= set(ALPHABET + ALPHABET.lower())
    return letters.upper() if fits else None


def _is_gap(letter: str) -> bool:
    """Spaces and dashes of every kind: keyboards of phones make long ones."""
    return letter.isspace() or letter in "-_.\u2010\u2011\u2012\u2013\u2014\u2212"
