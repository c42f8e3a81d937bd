"""Which waiting entries a claim takes, by the channel's mode. Everything here reads only; `claiming` takes.

The writer's transaction is open meanwhile, so nobody else picks: unlike on PostgreSQL nothing needs to be locked.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from carrick.outbox.channel import Channel, Mode
from carrick.outbox.sqlite.database import rows

Offer = Sequence[int]
"""An entry that may go: the place of its tenant among those given (or of its group), its sequence number, its size, its
rank, whether it has had trouble.
"""

LANE, SEQ, SIZE, RANK, TROUBLED = range(5)

LOWEST = -(2**63)
"""Below every rank."""


class Pick(NamedTuple):
    """What to take. `cut`: the limit in bytes left some out. `frozen`: a batch that came back as it was."""

    offers: Sequence[Offer]
    cut: bool = False
    frozen: bool = False


NOTHING = Pick(())


class Search(NamedTuple):
    """One claim's search: the channel at one moment, the limits, and what is behind closed gates.

    `floor` and `horizon` are the ranks between which it looks; entries below the floor are not fresh enough.
    """

    connection: sqlite3.Connection
    channel: Channel
    now: int
    floor: int
    horizon: int
    rows: int
    bytes: int
    tenant: str | None
    held_tenants: list[str]
    held_principals: list[str]

    def ask(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """The rows of a query about this channel, now, without what gates hold."""
        lists = {key: as_json(value) if isinstance(value, list) else value for key, value in params.items()}
        return rows(
            self.connection,
            name,
            channel=self.channel.name,
            now=self.now,
            floor=self.floor,
            horizon=self.horizon,
            held_principals=as_json(self.held_principals),
            **lists,
        )

    def lanes(self, after: str | None, most: int) -> list[str]:
        """Tenants with waiting entries, by name."""
        return [tenant for (tenant,) in self.ask("claim_lanes", after=after, most=most)]

    def has_more(self, lanes: list[str], look: int) -> bool:
        """Whether so many entries of one of these tenants are due that there may be more."""
        return bool(lanes) and bool(self.ask("claim_many", lanes=lanes, look=look)[0][0])


def as_json(values: Iterable[Any]) -> str:
    """A list as a parameter for json_each."""
    return msgspec.json.encode(list(values)).decode()


def pick(search: Search, lanes: list[str]) -> Pick:
    """Entries of the given tenants, in the channel's mode; coalesced ones of the first tenant."""
    if not lanes:
        return NOTHING
    match search.channel.mode:
        case Mode.STREAM:
            return pick_stream(search, lanes)
        case Mode.ORDERED:
            return pick_ordered(search, lanes)
        case Mode.COALESCE:
            return pick_coalesce(search, lanes[0])


def pick_stream(search: Search, lanes: list[str]) -> Pick:
    """Independent entries, each tenant its share; a second pass gives what some tenants left over to the others."""
    if len(lanes) == 1:
        return Pick(within(search.ask("claim_lane", tenant=lanes[0], rows=search.rows), search.bytes))
    first = search.ask("claim_stream", lanes=lanes, share=_share(search.rows, lanes), picked=[])
    taken = within(_by_place(first), search.bytes)
    left = search.bytes - _size(first)
    if first and left > 0 and len(taken) < search.rows:
        picked = [offer[SEQ] for offer in taken]
        more = search.ask("claim_stream", lanes=lanes, share=search.rows - len(taken), picked=picked)
        taken += within(_by_place(more), left, at_least=0)
        left -= _size(more)
    return Pick(taken[: search.rows], cut=left < 0)


def pick_oldest(search: Search, lanes: list[str]) -> Pick:
    """The oldest entries whoever's they are: for channels that are not fair."""
    if search.channel.mode is Mode.ORDERED:
        return _runs(search, sorted(_heads(search, lanes, search.rows), key=itemgetter(RANK, SEQ)))
    return Pick(within(search.ask("claim_oldest", lanes=lanes, rows=search.rows), search.bytes))


def pick_ordered(search: Search, lanes: list[str]) -> Pick:
    """Runs: per group the oldest and what may follow it, of each tenant its share of heads."""
    return _runs(search, _by_place(_heads(search, lanes, _share(search.rows, lanes))))


def pick_coalesce(search: Search, tenant: str) -> Pick:
    """Whole waiting groups of one tenant that are due; `rows` counts groups."""
    return whole_groups(search, [seq for (seq,) in search.ask("claim_coalesce", tenant=tenant, units=search.rows)])


def whole_groups(search: Search, heads: list[int]) -> Pick:
    """The groups of the given entries, each with all that is not behind a gate, as many as the bytes allow."""
    groups: list[list[Offer]] = [[] for _ in heads]
    for offer in search.ask("claim_members", heads=heads):
        groups[offer[LANE]].append(offer)
    sizes = [(unit, unit, _size(group)) for unit, group in enumerate(groups)]
    return Pick([offer for unit in within(sizes, search.bytes) for offer in groups[unit[LANE]]])


def within(offers: Iterable[Offer], most: int, *, at_least: int = 1) -> list[Offer]:
    """As many from the front as the bytes allow, the first whatever its size."""
    taken: list[Offer] = []
    upto = 0
    for offer in offers:
        upto += offer[SIZE]
        if upto > most and len(taken) >= at_least:
            break
        taken.append(offer)
    return taken


def _share(wanted: int, lanes: Sequence[str]) -> int:
    return max(1, -(-wanted // len(lanes)))


def _by_place(offers: Iterable[Offer]) -> list[Offer]:
    """The first offer of every tenant, then the second of every tenant, and so on."""
    places: dict[int, int] = defaultdict(int)
    placed = []
    for offer in offers:
        places[offer[LANE]] += 1
        placed.append((places[offer[LANE]], offer[LANE], offer))
    return [offer for _, _, offer in sorted(placed, key=itemgetter(0, 1))]


def _heads(search: Search, lanes: list[str], share: int) -> list[Offer]:
    """The first entries of groups, and entries without a group, that may go; by tenant and rank.

    It looks at the oldest entries first. Where most of those wait behind the head of their group, it goes from group to
    group instead, so that a long queue behind a few heads costs as little as a short one; where the groups are many,
    after a look at more of the oldest. Not so for fresh entries: all groups are too many to look at for a claim that
    passes over a backlog.
    """
    heads, enough = _near(search, lanes, share, share)
    if enough:
        return heads
    fresh = search.floor > LOWEST
    if fresh or len(search.ask("claim_groups", lanes=lanes, most=2 * search.rows)) == 2 * search.rows:
        heads, enough = _near(search, lanes, share, 8 * share)
        if enough or fresh:
            return heads
    return [*search.ask("claim_heads", lanes=lanes, share=share)]


def _near(search: Search, lanes: list[str], share: int, look: int) -> tuple[list[Offer], bool]:
    """The heads among so many of the oldest entries of each tenant, and whether they will do.

    A tenant of whom nothing was found must not be passed over while more of it waits than was looked at.
    """
    heads: list[Offer] = [*search.ask("claim_ordered", lanes=lanes, share=share, look=look)]
    served = {offer[LANE] for offer in heads}
    hidden = [lane for place, lane in enumerate(lanes) if place not in served]
    will_do = 4 * len(heads) >= search.rows or not search.has_more(lanes, look)
    return heads, will_do and not search.has_more(hidden, look)


def _runs(search: Search, heads: Sequence[Offer]) -> Pick:
    """The first entry of every run, the second of every run, ...; one that may not go yet ends its run (G5)."""
    heads = heads[: search.rows]
    if not heads:
        return NOTHING
    length = min(search.rows, -(-3 * search.rows // (2 * len(heads))))  # half more than needed: not all have as many
    runs = [[head] for head in heads]
    ended: set[int] = set()
    if length > 1:
        for follower in search.ask("claim_followers", heads=[head[SEQ] for head in heads], followers=length - 1):
            head, *offer, ready = follower
            if not ready:
                ended.add(head)
            if head not in ended:
                runs[head].append((heads[head][LANE], *offer))
    placed = sorted((place, head, offer) for head, run in enumerate(runs) for place, offer in enumerate(run))
    offers = [offer for _, _, offer in placed]
    return Pick(within(offers[: search.rows], search.bytes), cut=_size(offers) > search.bytes)


def _size(offers: Iterable[Offer]) -> int:
    return sum(offer[SIZE] for offer in offers)
