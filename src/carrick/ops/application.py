"""Finds the outbox of an application by the name of its module, for commands that run the application's handlers."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType

from carrick.errors import InvalidInput
from carrick.outbox.outbox import Outbox

ACCEPTED = "package.module with one Outbox in it, or package.module:attribute"


def load_outbox(target: str) -> Outbox:
    """Import the module, from the working directory too, and find its outbox. Raises InvalidInput, in one line."""
    name, _, attribute = target.partition(":")
    if not all(part.isidentifier() for part in name.split(".")):
        raise InvalidInput("app", f"{target!r} is not the name of a module", ACCEPTED)
    module = _imported(name)
    return _named(module, attribute) if attribute else _only(module)


def _imported(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InvalidInput("app", f"there is no module {error.name!r} (looked in {here} too)", ACCEPTED) from None
        raise _import_failed(name, error) from error
    except (Exception, SystemExit) as error:
        raise _import_failed(name, error) from error


def _import_failed(name: str, error: BaseException) -> InvalidInput:
    """What went wrong in the application's own code, and where."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error}"
    return InvalidInput("app", f"importing {name} failed with {what} ({place.filename}, line {place.lineno})", ACCEPTED)


def _named(module: ModuleType, attribute: str) -> Outbox:
    try:
        found = getattr(module, attribute)
    except AttributeError:
        raise InvalidInput("app", f"{module.__name__} has no {attribute!r}", ACCEPTED) from None
    if not isinstance(found, Outbox):
        kind = type(found).__name__
        raise InvalidInput("app", f"{module.__name__}:{attribute} is a {kind}, not an Outbox", ACCEPTED)
    return found


def _only(module: ModuleType) -> Outbox:
    found = {name: value for name, value in vars(module).items() if isinstance(value, Outbox)}
    if not found:
        raise InvalidInput("app", f"{module.__name__} has no Outbox", ACCEPTED)
    if len({id(outbox) for outbox in found.values()}) > 1:
        names = ", ".join(sorted(found))
        raise InvalidInput("app", f"{module.__name__} has several Outboxes ({names}); name one", ACCEPTED)
    return next(iter(found.values()))
