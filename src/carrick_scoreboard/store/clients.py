"""The allow-list of device applications: which of them may ask for a sign-in."""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from carrick.errors import InvalidInput
from carrick_scoreboard.store.audit import write_audit
from carrick_scoreboard.store.tables import Ask, Tables, first_of, value_of

CLIENT_ID = re.compile(r"[A-Za-z0-9._~-]{1,100}")
MAX_TEXT = 200


class DeviceClient(msgspec.Struct, frozen=True, kw_only=True):
    """One device application; `comment` and `email` say whose it is."""

    client_id: str
    comment: str
    email: str
    created_at: datetime
    replaced_by: str | None = None
    disabled_at: datetime | None = None


class Clients:
    """The allow-list. Raises InvalidInput for what it cannot take."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, client_id: str, comment: str, email: str, *, actor: str) -> None:
        """Let a device application in."""
        _check(client_id, comment, email)
        with self._tables.writing() as ask:
            _add(ask, client_id, comment, email)
            write_audit(ask, actor, "client.add", client_id, {"comment": comment})

    def disable(self, client_id: str, *, actor: str) -> bool:
        """Close the door for new sign-ins; devices that are signed in stay. False where it was closed already."""
        with self._tables.writing() as ask:
            _known(ask, client_id)
            changed = bool(ask("client_disable", client_id=client_id, replaced_by=None))
            if changed:
                write_audit(ask, actor, "client.disable", client_id, {})
            return changed

    def rotate(self, old: str, new: str, *, actor: str) -> None:
        """Let the application in under a new id, and close the old one for new sign-ins."""
        _check(new, "", "")
        with self._tables.writing() as ask:
            client = _known(ask, old)
            _add(ask, new, client.comment, client.email)
            if not ask("client_disable", client_id=old, replaced_by=new):
                raise InvalidInput("client_id", f"{old!r} is disabled", "the id of an application that is let in")
            write_audit(ask, actor, "client.rotate", old, {"to": new})

    def get(self, client_id: str) -> DeviceClient | None:
        """The application of that id."""
        with self._tables.reading() as ask:
            return first_of(ask("client_get", client_id=client_id), DeviceClient)

    def all(self) -> list[DeviceClient]:
        """All of them, the oldest first."""
        with self._tables.reading() as ask:
            return [value_of(row, DeviceClient) for row in ask("client_list")]


def _check(client_id: str, comment: str, email: str) -> None:
    if not CLIENT_ID.fullmatch(client_id):
        raise InvalidInput("client_id", f"{client_id[:40]!r} is no id", "1 to 100 letters, digits and . _ ~ -")
    for field, text in (("comment", comment), ("email", email)):
        if len(text) > MAX_TEXT or not text.isprintable():
            raise InvalidInput(field, "is too long or not printable", f"at most {MAX_TEXT} printable characters")


def _known(ask: Ask, client_id: str) -> DeviceClient:
    client = first_of(ask("client_get", client_id=client_id), DeviceClient)
    if client is None:
        known = ", ".join(row["client_id"] for row in ask("client_list")) or "none yet; `carrick clients add`"
        raise InvalidInput("client_id", f"{client_id[:40]!r} is not known", known)
    return client


def check_let_in(ask: Ask, client_id: str) -> None:
    """Raise InvalidInput unless the application may ask for a sign-in. Anybody may ask: no other id is told."""
    client = first_of(ask("client_get", client_id=client_id), DeviceClient)
    if client is None or client.disabled_at is not None:
        raise InvalidInput("client_id", f"{client_id[:40]!r} is not let in", "an id that the operator has let in")


def _add(ask: Ask, client_id: str, comment: str, email: str) -> None:
    if not ask("client_add", client_id=client_id, comment=comment, email=email):
        raise InvalidInput("client_id", f"{client_id!r} is taken", "an id that no application has had")
