"""Which event of a list the store has refused. A store says what is wrong; who sent the list wants to know where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from carrick.entry import NewEntry
from carrick.errors import CarrickError, EntryNotFound, InvalidInput, KeyReused, PayloadTooLarge, StoreError
from carrick.forward.events import CHANNEL
from carrick.outbox.store import Store
from carrick.web.problems import Problem, problem_of


def refusal(error: InvalidInput | KeyReused, entries: Sequence[NewEntry], store: Store) -> Problem:
    """The problem with these entries, of which the store has put none; without a place when it cannot be told."""
    try:
        index = next(_places(error, entries, store), None)
    except StoreError:  # the look at what is there failed; what is wrong is known all the same
        index = None
    if isinstance(error, KeyReused):
        given = index is None or entries[index].key != str(entries[index].id)
        return problem_of(error, index=index, field="key" if given else "event_id")
    if error.field == "id":
        error = InvalidInput("event_id", "is that of an entry with another key", "a UUID that is new, or none")
    return problem_of(error, index=index)


def _places(error: CarrickError, entries: Sequence[NewEntry], store: Store) -> Iterator[int]:
    match error:
        case PayloadTooLarge():
            most = store.channels()[CHANNEL].max_payload_bytes
            yield from (index for index, entry in enumerate(entries) if len(entry.payload) > most)
        case KeyReused():
            yield from _of_key(entries, error.tenant_id, error.key)
        case InvalidInput(field="id"):
            yield from _of_id(entries, store)


def _of_key(entries: Sequence[NewEntry], tenant_id: str, key: str) -> Iterator[int]:
    """Where the key comes with other content than before, else where it comes first."""
    same = [index for index, entry in enumerate(entries) if (entry.tenant_id, entry.key) == (tenant_id, key)]
    yield from (index for index in same if _content(entries[index]) != _content(entries[same[0]]))
    yield from same


def _content(entry: NewEntry) -> Any:
    return entry.event_type, entry.group_key, entry.principal, entry.payload


def _of_id(entries: Sequence[NewEntry], store: Store) -> Iterator[int]:
    """Where an id has another key than before, in the list or in the store."""
    seen: dict[UUID, tuple[str, str | None]] = {}
    for index, entry in enumerate(entries):
        if entry.id is not None:
            named = (entry.tenant_id, entry.key)
            if seen.setdefault(entry.id, named) != named or _is_anothers(entry, entry.id, store):
                yield index


def _is_anothers(entry: NewEntry, entry_id: UUID, store: Store) -> bool:
    try:
        if store.contents(entry_id, characters=1).key != entry.key:
            return True
        there = store.standing(entry_id)
    except EntryNotFound:
        return False
    return (there.channel, there.tenant_id) != (entry.channel, entry.tenant_id)
