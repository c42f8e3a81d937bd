"""What was wrong with an option, by the option's own name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from carrick.errors import InvalidInput

OPTIONS = {
    "max_rows": "--limit",
    "limit": "--limit",
    "spread_seconds": "--spread",
    "seconds": "--seconds",
    "tenant": "--tenant",
    "reason": "--reason",
    "after": "--after",
}
"""The option that each parameter of a store is given by."""


@contextmanager
def naming_options() -> Iterator[None]:
    """Raise InvalidInput with the option that the user gave instead of the parameter that it became."""
    try:
        yield
    except InvalidInput as error:
        option = OPTIONS.get(error.field)
        if option is None:
            raise
        problem, _, accepted = str(error).removeprefix(f"{error.field}: ").rpartition("; accepted: ")
        raise InvalidInput(option, problem, accepted) from None
