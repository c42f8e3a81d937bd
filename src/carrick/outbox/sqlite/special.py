"""Entries that come back apart: a frozen batch whole and alone, or suspects of a crash in ever smaller batches."""

from __future__ import annotations

from typing import NamedTuple

from carrick.outbox.channel import Mode
from carrick.outbox.sqlite.picking import NOTHING, Pick, Search, whole_groups, within


class Special(NamedTuple):
    """An entry that comes back apart, through which the batch it belongs to is seen."""

    tenant_id: str
    batch_cap: int | None
    frozen_batch: str | None


def pick_special(search: Search, turn: str | None = None) -> Pick:
    """The first batch of such entries that may go, the oldest first. `turn`: only what this tenant has a part in."""
    stuck: set[str] = set()
    for row in search.ask(
        "claim_special",
        tenant=search.tenant if turn is None else turn,
        held_tenants=search.held_tenants,
        mode=search.channel.mode.value,
    ):
        special = Special(*row)
        if special.frozen_batch is None:
            picked = _suspects(search, special, search.tenant if turn is None else turn)
        elif special.frozen_batch in stuck:
            continue
        else:
            picked = _frozen(search, special)
            stuck.add(special.frozen_batch)
        if picked.offers:
            return picked
    return NOTHING


def _frozen(search: Search, special: Special) -> Pick:
    """The whole batch, or nothing while one of its entries may not go."""
    found = search.ask(
        "claim_frozen",
        frozen_batch=special.frozen_batch,
        tenant=search.tenant,
        held_tenants=search.held_tenants,
        mode=search.channel.mode.value,
    )
    return Pick([offer for *offer, _ in found] if all(row[-1] for row in found) else [], frozen=True)


def _suspects(search: Search, special: Special, tenant: str | None) -> Pick:
    """Suspects with the same cap, at most as many as the cap and the limits allow. A coalesced group is one."""
    coalesces = search.channel.mode is Mode.COALESCE
    found = search.ask(
        "claim_suspects",
        batch_cap=special.batch_cap,
        tenant=special.tenant_id if coalesces or search.channel.one_tenant else tenant,
        held_tenants=search.held_tenants,
        mode=search.channel.mode.value,
        most=min(special.batch_cap or 1, search.rows),
    )
    if coalesces:
        return whole_groups(search, [seq for _, seq, *_ in found])
    return Pick(within(found, search.bytes))
