"""Every error Carrick raises on purpose. An exception's docstring says what to do about it.

CarrickError
├── InvalidInput                 something the caller gave is not acceptable; names the field
│   ├── InvalidPayload           not JSON
│   ├── PayloadTooLarge
│   ├── UnknownChannel
│   ├── UnknownState
│   ├── InvalidToken
│   └── UnsupportedConnection
├── KeyReused                    the same key with other content
├── RequestReused                the same idempotency key with another request
├── BacklogFull                  a bounded channel is full
├── EntryNotFound
├── ContactNotFound
├── ChannelConflict              a channel is declared again with another mode while entries wait
├── SettingsError                a variable of the environment or of .env is not acceptable
├── MissingExtra                 an optional part of Carrick is not installed
└── StoreError                   the database cannot do it now
    ├── SchemaMissing
    ├── SchemaTooNew
    ├── SchemaOutdated
    ├── StoreReadOnly
    ├── DiskFull
    ├── StoreBusy
    ├── StoreUnavailable
    └── NothingHeard
"""

from __future__ import annotations

from collections.abc import Sequence


class CarrickError(Exception):
    """Base of all errors that Carrick raises on purpose."""


class InvalidInput(CarrickError, ValueError):
    """Correct the named field; nothing was written."""

    def __init__(self, field: str, problem: str, accepted: str) -> None:
        self.field = field
        super().__init__(f"{field}: {problem}; accepted: {accepted}")


class InvalidPayload(InvalidInput):
    """Give a JSON value, or bytes that hold valid JSON in UTF-8; nothing was written."""


class PayloadTooLarge(InvalidInput):
    """Send less, or raise the channel's max_payload_bytes; nothing was written."""


class UnknownChannel(InvalidInput):
    """Declare the channel first (`outbox.channel(name)`), or correct its name; nothing was written."""

    def __init__(self, channel: str, known: Sequence[str]) -> None:
        self.channel = channel
        self.known = tuple(known)
        listed = ", ".join(known) if known else "none is declared yet"
        super().__init__("channel", f"unknown channel {channel!r}", f"declared channels ({listed})")


class UnknownState(InvalidInput):
    """Use one of the accepted state names."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__("state", f"unknown state {name!r}", ", ".join(known))


class InvalidToken(InvalidInput):
    """Give the UUID that claim returned."""

    def __init__(self, value: object) -> None:
        super().__init__("token", f"{str(value)[:80]!r} is not a UUID", "the lease token that claim returned")


class UnsupportedConnection(InvalidInput):
    """Pass a connection or session of one of the supported libraries, for the database this outbox uses."""


class KeyReused(CarrickError):
    """The key belongs to an entry with other content: use a new key for new content. Nothing was written."""

    def __init__(self, channel: str, tenant_id: str, key: str) -> None:
        self.channel, self.tenant_id, self.key = channel, tenant_id, key
        whose = f" of tenant {tenant_id!r}" if tenant_id else ""
        super().__init__(
            f"key {key!r} in channel {channel!r}{whose} was already put with other content; nothing was written"
        )


class RequestReused(CarrickError):
    """Use a new idempotency key for a new request; nothing was written."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the idempotency key {key!r} was used for another request")


class BacklogFull(CarrickError):
    """The channel holds as many bytes as it may: wait for delivery, or raise max_backlog_bytes. Nothing was written."""

    def __init__(self, channel: str) -> None:
        self.channel = channel
        super().__init__(
            f"channel {channel!r} is full: its waiting entries reach max_backlog_bytes; nothing was written"
        )


class EntryNotFound(CarrickError):
    """No such entry: it was never committed, or retention has removed it."""

    def __init__(self, entry_id: object) -> None:
        super().__init__(f"no entry {entry_id}: it was never committed, or retention has removed it")


class ContactNotFound(CarrickError):
    """No such contact of this tenant: correct the id or the identity, or the tenant."""

    def __init__(self, tenant: str, who: str) -> None:
        super().__init__(f"tenant {tenant!r} has no contact {who}")


class ChannelConflict(CarrickError):
    """Drain the channel before changing its mode, or declare a channel with another name."""


class SettingsError(CarrickError):
    """Correct the named variable, in the environment or in `.env`; nothing was started."""


class MissingExtra(CarrickError):
    """Install the named extra of Carrick in the same environment."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs an optional part of Carrick; run: pip install 'carrick[{extra}]'")


class StoreError(CarrickError):
    """The database cannot do this at the moment; nothing was half-written."""


class SchemaMissing(StoreError):
    """Run `carrick migrate` once against this database."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} has no Carrick schema; run: carrick migrate")


class SchemaOutdated(StoreError):
    """Run `carrick migrate` to bring the schema up to this release."""

    def __init__(self, where: str, found: int, needed: int) -> None:
        super().__init__(f"{where} has schema {found}, this release needs {needed}; run: carrick migrate")


class SchemaTooNew(StoreError):
    """Upgrade Carrick: a newer release has already migrated this database."""

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"{where} has schema {found}, this release knows up to {known}; upgrade Carrick to use this database"
        )


class StoreReadOnly(StoreError):
    """Point Carrick at a writable database, or give it the rights to write."""


class DiskFull(StoreError):
    """Make room on the database's disk; nothing was half-written."""


class StoreBusy(StoreError):
    """Another writer holds the database for too long; try again, and look for a long transaction."""


class StoreUnavailable(StoreError):
    """The database does not answer; try again when it is back."""


class NothingHeard(StoreError):
    """Connect to the database past the pooler, or in its session mode; until then others' puts are found by looking."""

    def __init__(self) -> None:
        super().__init__(
            "the database takes LISTEN, but notifications do not arrive: a pooler in transaction mode stands between"
        )


def twin(error: Exception) -> Exception:
    """The same error for another who waits: one that is raised twice at once mixes up its tracebacks."""
    twin = type(error).__new__(type(error), *error.args)
    twin.__dict__.update(error.__dict__)
    twin.__cause__ = error
    return twin
