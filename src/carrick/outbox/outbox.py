"""What users import: an outbox in their own database."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, TypeVar, overload
from uuid import UUID

from carrick import tracing
from carrick.entry import Batch, NewEntry, Outcome, Put, State
from carrick.errors import UnsupportedConnection
from carrick.outbox.adapters import adapter_for
from carrick.outbox.channel import Channel, declared, left_open
from carrick.outbox.explain import Explanation, explain
from carrick.outbox.handling import Handler, Handling, registered
from carrick.outbox.limits import check_token
from carrick.outbox.opening import named_database, open_store
from carrick.outbox.producing import new_entry
from carrick.outbox.store import Store

H = TypeVar("H", bound=Handler)


class Outbox:
    """Entries put here, in the caller's own transaction, are delivered elsewhere. Safe to share between threads."""

    def __init__(self, store: Store, *, dialect: str, channel_defaults: Mapping[str, Any] | None = None) -> None:
        self.store = store
        self._dialect = dialect
        self._channel_defaults = dict(channel_defaults or {})
        self._handlers: dict[str, Handling] = {}

    @classmethod
    def connect(cls, url: str, *, channel_defaults: Mapping[str, Any] | None = None) -> Self:
        """Use the outbox behind a database URL. Raises SchemaMissing (or its kin) when `carrick migrate` must run.

        `channel_defaults` are options of channels that do not say otherwise.
        """
        store = open_store(url)
        try:
            store.check_schema()
        except BaseException:
            store.close()
            raise
        dialect = "postgresql" if named_database(url).backend == "postgres" else "sqlite"
        return cls(store, dialect=dialect, channel_defaults=channel_defaults)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back all connections."""
        self.store.close()

    def channel(self, name: str, **options: Any) -> Channel:
        """Declare a channel, once at start; idempotent. Options are the fields of Channel, mode among them.

        What the options leave open stays as `OUTBOX_…` settings of another process, a drain, have set it.
        Raises InvalidInput for an unknown or absurd option, ChannelConflict for another mode while entries wait.
        """
        known = self.store.channels().get(name)
        channel = declared(name, options, defaults=self._channel_defaults, known=known)
        given = options.keys() | self._channel_defaults.keys()
        self.store.declare(channel, keeps=() if known is None else left_open(known) - given)
        return channel

    def handler(self, channel: str, *, timeout: float | None = None, idempotent: bool = True) -> Callable[[H], H]:
        """Register the decorated function, sync or async, as what delivers the channel's entries.

        It gets a Batch. `timeout` is in seconds, by default what the lease allows. `idempotent=False`: a call that did
        not end, in time or before the process stopped, is not simply repeated. Raises InvalidInput when the channel
        has a handler already.
        """

        def register(function: H) -> H:
            new = Handling(channel=channel, handler=function, timeout=timeout, idempotent=idempotent)
            self._handlers = registered(self._handlers, new)
            return function

        return register

    @property
    def handlers(self) -> Mapping[str, Handling]:
        """The registered handlers, by channel."""
        return MappingProxyType(self._handlers)

    @overload
    def put(self, /, **fields: Any) -> Put: ...
    @overload
    def put(self, connection: Any, /, **fields: Any) -> Any: ...
    def put(self, connection: Any = None, /, **fields: Any) -> Any:
        """Put one entry in the transaction of the given connection or session, else in one of its own.

        Fields: channel, event_type, payload; key, tenant_id, group, principal, priority, headers, traceparent,
        occurred_at, delay, max_wait. With an async connection the answer must be awaited. Without a traceparent the
        span of OpenTelemetry that is open counts, if one is.
        Raises InvalidInput (and kin), KeyReused, BacklogFull; then nothing was written.
        """
        with tracing.span("put", str(fields.get("channel", ""))):
            (entry,) = traced([fields])
            if connection is None:
                return self.store.put(entry)
            adapter = self._adapter(connection)
            return adapter.run(self._putting.put_steps(entry))

    @overload
    def put_many(self, entries: Iterable[Mapping[str, Any]], /) -> Sequence[Put]: ...
    @overload
    def put_many(self, connection: Any, entries: Iterable[Mapping[str, Any]], /) -> Any: ...
    def put_many(self, *args: Any) -> Any:
        """Put many entries, each a mapping of the fields that `put` takes: all or none, the fastest way there is."""
        connection, given = args if len(args) == 2 else (None, args[0])
        with tracing.span("put", "several"):
            entries = traced(given)
            if connection is None:
                return self.store.put_many(entries)
            adapter = self._adapter(connection)
            return adapter.run(self._putting.put_many_steps(entries, can_bulk=adapter.can_bulk))

    def claim(self, channel: str, *, owner: str | None = None, **limits: Any) -> Batch:
        """Take due entries for a time; see Store.claim for the limits."""
        return self.store.claim(channel, owner or default_owner(), **limits)

    def renew(self, token: UUID, seconds: int) -> int:
        """Let the lease end `seconds` from now; how many entries are still held. Zero: the lease is lost."""
        return self.store.renew(token, seconds)

    def note(self, token: UUID, intent: Any, ids: Collection[UUID] | None = None) -> int:
        """Write down what the delivery is about to do, before it does it, and with which entries (None: all).

        Zero: the lease is lost.
        """
        return self.store.note(token, intent, ids)

    def finish(self, token: UUID, outcomes: Mapping[UUID, Outcome]) -> dict[UUID, State]:
        """Report outcomes; the new state of the entries that this call changed."""
        return self.store.finish(token, outcomes)

    def finish_all(self, token: UUID) -> dict[UUID, State]:
        """Everything held under the lease is delivered."""
        return self.store.finish_all(token)

    def release(self, token: UUID) -> int:
        """Give everything held under the lease back, nothing spent."""
        return self.store.release(token)

    def explain(self, entry_id: UUID | str) -> Explanation:
        """One sentence why the entry has not been delivered and until when. Raises EntryNotFound."""
        return explain(self.store.standing(check_token(entry_id)))

    def _adapter(self, connection: Any) -> Any:
        adapter = adapter_for(connection)
        if adapter.dialect != self._dialect:
            raise UnsupportedConnection(
                "connection",
                f"is a {adapter.dialect} connection",
                f"a connection to the {self._dialect} database of this outbox",
            )
        return adapter

    @property
    def _putting(self) -> Any:
        """The put statements of this outbox's database; its package is loaded already."""
        if self._dialect == "postgresql":
            from carrick.outbox.postgres import putting

            return putting
        from carrick.outbox.sqlite import putting as sqlite_putting

        return sqlite_putting


def traced(given: Iterable[Mapping[str, Any]]) -> list[NewEntry]:
    """The entries, checked; with the context of the span that is open, unless they bring their own or none is."""
    here = tracing.current()
    if here is not None:
        given = [
            fields if fields.get("traceparent") is not None else {**fields, "traceparent": here} for fields in given
        ]
    return [new_entry(**fields) for fields in given]


def default_owner() -> str:
    """Who claims when nobody says: this host and process."""
    return f"{socket.gethostname()}-{os.getpid()}"
