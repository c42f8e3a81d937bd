"""A resolve on SQLite, as statements for whichever connection the caller has: whole or nothing in its transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from carrick.contacts.identity import Identity
from carrick.contacts.sqlite.rules import Found, Plan, Traits, changed_traits, joined_traits, plan, traits_after
from carrick.contacts.store import Request, Resolved
from carrick.errors import InvalidInput
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.ids import new_id
from carrick.outbox.producing import new_entry
from carrick.outbox.sqlite.database import PACKAGE as ENGINE
from carrick.outbox.sqlite.declaring import row_of
from carrick.outbox.sqlite.failures import named
from carrick.outbox.sqlite.putting import put_steps
from carrick.outbox.statement import Row, Statement, Steps, query

PACKAGE = "carrick.contacts.sqlite"
MOST_KNOWN_BYTES = 256 * 1024

SAVEPOINT = Statement("savepoint carrick_contacts", {})
ROLLBACK = Statement("rollback to savepoint carrick_contacts", {})
RELEASE = Statement("release savepoint carrick_contacts", {})

T = TypeVar("T")


def ask(name: str, **params: Any) -> Steps[list[Row]]:
    """The rows of queries/<name>.sql."""
    return (yield Statement(query(PACKAGE, name), params))


def resolve_steps(channel: str, tenant: str, requests: Sequence[Request]) -> Steps[list[Resolved]]:
    """Resolve one after the other. Raises InvalidInput, BacklogFull or a StoreError; then nothing was written."""
    return (yield from named(_whole(_resolve_each(Scene(channel, tenant), requests))))


def tell_steps(channel: str, tenant: str, event_type: str, body: dict[str, Any]) -> Steps[None]:
    """Put one event that is about no contact."""
    yield from named(Scene(channel, tenant).tell(None, event_type, body))


class Scene:
    """One tenant's contacts, and the channel that tells of them."""

    def __init__(self, channel: str, tenant: str) -> None:
        self._channel = channel
        self._tenant = tenant

    def resolve(self, request: Request) -> Steps[Resolved]:
        """Find, make or merge the one contact, as rules.py says."""
        found = yield from self._found(request.identities)
        known = {(one.type, one.normalised) for contact in found for one in contact.tied}
        new = [one for one in request.identities if (one.type, one.normalised) not in known]
        chosen = plan(request.identities, found)
        created = not chosen.joined
        if created:
            contact_id = new_id()
            yield from ask("resolve_create", tenant=self._tenant, contact=contact_id)
        else:
            contact_id = chosen.joined[0].contact_id
            yield from self._merge(contact_id, chosen.joined[1:])
        yield from self._add(contact_id, created, new, joined_traits(chosen.joined), json.loads(request.traits))
        yield from self._tell_conflicts(contact_id, chosen)
        return Resolved(
            contact_id=UUID(contact_id),
            created=created,
            merged=tuple(UUID(one.contact_id) for one in chosen.joined[1:]),
            conflicts=tuple(UUID(one.contact_id) for one in chosen.apart),
        )

    def _found(self, given: Sequence[Identity]) -> Steps[list[Found]]:
        """The contacts that the identities belong to, that of the strongest identity first."""
        rows = yield from ask("resolve_find", tenant=self._tenant, identities=_rows(given))
        owners = {(kind, normalised): contact for kind, normalised, *contact in rows}
        found: dict[str, Found] = {}
        for one in given:
            if owner := owners.get((one.type, one.normalised)):
                contact_id, seq, traits, external_id = owner
                before = found.get(contact_id) or Found(contact_id, seq, external_id, json.loads(traits), ())
                found[contact_id] = before._replace(tied=(*before.tied, one))
        return list(found.values())

    def _merge(self, survivor: str, losers: Iterable[Found]) -> Steps[None]:
        for loser in losers:
            yield from ask("resolve_move", survivor=survivor, loser=loser.contact_id)
            yield from ask("resolve_bury", survivor=survivor, loser=loser.contact_id)
            yield from self.tell(survivor, "contact.merged.v1", {"merged_contact_id": loser.contact_id})

    def _add(
        self, contact_id: str, created: bool, new: Sequence[Identity], known: Traits, given: Traits
    ) -> Steps[None]:
        """Give the contact the identities that nobody has, and its traits; tell what really changed."""
        changed, after = changed_traits(known, given), traits_after(known, given)
        text = json.dumps(after, ensure_ascii=False)
        if changed and len(text.encode()) > MOST_KNOWN_BYTES:
            raise InvalidInput(
                "traits", "would be larger than 256 kB together with those known", "less, or null to remove some"
            )
        if new:
            yield from ask("resolve_add", tenant=self._tenant, contact=contact_id, identities=_rows(new))
        yield from ask("resolve_set", contact=contact_id, traits=text, touched=bool(new or changed))
        if created:
            yield from self.tell(contact_id, "contact.created.v1", {"identities": _told(new), "traits": after})
        elif new or changed:
            yield from self.tell(contact_id, "contact.updated.v1", {"identities": _told(new), "traits": changed})

    def _tell_conflicts(self, contact_id: str, chosen: Plan) -> Steps[None]:
        """Tell once for each pair of external ids that two contacts were named together and stay apart."""
        for other in chosen.apart:
            pair = {"external_id": chosen.external_id, "other": other.external_id}
            if (yield from ask("resolve_conflict", tenant=self._tenant, **pair)):
                body = {
                    "external_id": chosen.external_id,
                    "other_contact_id": other.contact_id,
                    "other_external_id": other.external_id,
                    "identities": _told(other.tied),
                }
                yield from self.tell(contact_id, "contact.conflict.v1", body)

    def tell(self, contact_id: str | None, event_type: str, body: dict[str, Any]) -> Steps[None]:
        """One event in the same transaction, with the contact as its group. Declares the channel when nobody has."""
        if not (yield Statement(query(ENGINE, "channel"), {"name": self._channel})):
            declared = Channel(name=self._channel, mode=Mode.ORDERED, said=("mode",))
            yield Statement(query(ENGINE, "declare_channel"), row_of(declared))
        about = {} if contact_id is None else {"contact_id": contact_id}
        payload = {"tenant_id": self._tenant, **about, **body}
        entry = new_entry(
            channel=self._channel, event_type=event_type, payload=payload, tenant_id=self._tenant, group=contact_id
        )
        yield from put_steps(entry)


def _resolve_each(scene: Scene, requests: Sequence[Request]) -> Steps[list[Resolved]]:
    answers: list[Resolved] = []
    for request in requests:
        answers += [(yield from scene.resolve(request))]
    return answers


def _whole(steps: Steps[T]) -> Steps[T]:
    """All or nothing within the caller's transaction."""
    yield SAVEPOINT
    try:
        result = yield from steps
    except GeneratorExit:
        raise  # the connection is not ours to use any more
    except BaseException:
        yield ROLLBACK
        yield RELEASE
        raise
    yield RELEASE
    return result


def _rows(identities: Iterable[Identity]) -> str:
    return msgspec.json.encode(list(identities)).decode()


def _told(identities: Iterable[Identity]) -> list[dict[str, str]]:
    return [{"type": one.type.value, "value": one.normalised} for one in identities]
