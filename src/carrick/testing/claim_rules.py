"""What a claim may take, judged after the fact: every rule of the documents about claims as one check over a model.

The rules leave some choices open (which tenant begins, how a batch is shared); a judge holds for every store that
keeps them, where a copy of one algorithm would hold only for that one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from carrick.entry import State
from carrick.outbox.channel import Mode
from carrick.testing.model import Model, ModelEntry

FRESH_LOOK = 8
"""How many entries of a tenant a claim of fresh ones looks at least."""


@dataclass(frozen=True)
class Asked:
    """The limits of one claim. Rows count groups in coalesce channels."""

    channel: str
    rows: int
    bytes: int
    tenant: str | None = None
    fresh: float | None = None


Lane = tuple[str, bool, str]
"""A channel, whether fresh entries were asked for, and a tenant: those who take turns with each other."""


@dataclass
class Judge:
    """Judges claims one after the other; remembers who waited, for fairness."""

    model: Model
    waited: dict[Lane, int] = field(default_factory=lambda: defaultdict(int))
    rivals: dict[Lane, set[str]] = field(default_factory=lambda: defaultdict(set))

    def check(self, asked: Asked, taken: Sequence[ModelEntry]) -> None:
        """Raise AssertionError with the rule that the claim broke. Call before the model takes the entries."""
        if self.model.half_open(asked.channel):
            asked = replace(asked, rows=1)
        may_go = self._may_go(asked)
        if not taken:
            assert not may_go or self._too_deep(asked), f"nothing was claimed though {numbers(may_go)} could be"
            return
        assert set(taken) <= set(may_go), f"{numbers(set(taken) - set(may_go))} may not go now"
        assert len(set(taken)) == len(taken), "an entry was claimed twice"
        self._check_units(asked, taken)
        self._check_batch(asked, taken, may_go)
        self._check_fairness(asked, taken, may_go)

    def _too_deep(self, asked: Asked) -> bool:
        """A claim of fresh entries in order looks at some of each tenant's only: more may wait behind the heads."""
        if asked.fresh is None or self.model.channels[asked.channel].mode is not Mode.ORDERED:
            return False
        due = [entry for entry in self.model.of(asked.channel, State.PENDING) if entry.due <= self.model.now]
        return max(Counter(entry.new.tenant_id for entry in due).values()) > FRESH_LOOK

    def _may_go(self, asked: Asked) -> list[ModelEntry]:
        """Every entry that some legal claim could take now."""
        waiting = self.model.of(asked.channel, State.PENDING)
        mine = [entry for entry in waiting if asked.tenant in (None, entry.new.tenant_id)]
        return [entry for entry in mine if self._entry_may_go(asked, entry)]

    def _entry_may_go(self, asked: Asked, entry: ModelEntry) -> bool:
        if entry.apart and asked.fresh is not None:
            return False
        if entry.frozen is not None:
            return all(self._free(asked, member) and self._first(member) for member in self._frozen_batch(entry))
        mode = self.model.channels[asked.channel].mode
        if mode is Mode.COALESCE and entry.group is not None:
            return self._group_may_go(asked, entry)
        if not self._free(asked, entry):
            return False
        return mode is not Mode.ORDERED or entry.group is None or self._reachable(asked, entry)

    def _frozen_batch(self, entry: ModelEntry) -> list[ModelEntry]:
        return [other for other in self.model.of(entry.new.channel, State.PENDING) if other.frozen == entry.frozen]

    def _free(self, asked: Asked, entry: ModelEntry) -> bool:
        """Due, fresh enough, behind no gate, of the tenant that was asked for, its group not held by another lease."""
        return (
            entry.due <= self.model.now
            and self._fresh(asked, entry)
            and not self.model.gated(entry)
            and asked.tenant in (None, entry.new.tenant_id)
            and not self._held(entry)
        )

    def _fresh(self, asked: Asked, entry: ModelEntry) -> bool:
        return asked.fresh is None or entry.rank >= self.model.now - asked.fresh

    def _held(self, entry: ModelEntry) -> bool:
        """G4: a live lease holds entries of its group."""
        if self.model.channels[entry.new.channel].mode is Mode.STREAM or entry.group is None:
            return False
        return any(other.group == entry.group for other in self.model.of(entry.new.channel, State.CLAIMED))

    def _earlier(self, entry: ModelEntry) -> list[ModelEntry]:
        waiting = self.model.of(entry.new.channel, State.PENDING)
        return [other for other in waiting if other.group == entry.group and other.number < entry.number]

    def _first(self, entry: ModelEntry) -> bool:
        """G5: nothing earlier of its group waits, but for members of its own frozen batch."""
        if self.model.channels[entry.new.channel].mode is not Mode.ORDERED or entry.group is None:
            return True
        return all(other.frozen is not None and other.frozen == entry.frozen for other in self._earlier(entry))

    def _reachable(self, asked: Asked, entry: ModelEntry) -> bool:
        """G5: first of its group, or behind others that may go in the same run. One that comes apart ends a run."""
        earlier = self._earlier(entry)
        if entry.apart:
            return not earlier
        return all(self._free(asked, other) and not other.apart for other in earlier)

    def _group_may_go(self, asked: Asked, entry: ModelEntry) -> bool:
        """A coalesced group: whole, debounced, and behind its own unsure or suspected part; but not what gates hold."""
        if self.model.gated(entry) or self._held(entry):
            return False
        waiting = self.model.of(asked.channel, State.PENDING)
        members = [other for other in waiting if other.group == entry.group and not self.model.gated(other)]
        if any(other.frozen is not None for other in members):
            return False
        now = self.model.now
        if any(other.troubled and not other.apart and other.due > now for other in members):
            return False
        if any(other.apart for other in members):
            return asked.fresh is None and any(other.due <= now for other in members if other.apart)
        if not any(self._fresh(asked, other) for other in [other for other in members if other.due <= now][:1]):
            return False  # a group is as old as its first due entry
        waits = [other.max_wait_at for other in members if other.max_wait_at is not None]
        return (
            any(not other.delayed and other.due <= now for other in members)
            or all(other.due <= now for other in members)
            or (bool(waits) and min(waits) <= now)
        )

    def _check_units(self, asked: Asked, taken: Sequence[ModelEntry]) -> None:
        """Frozen batches alone and whole, suspects among themselves and no more than their cap, groups whole."""
        mode = self.model.channels[asked.channel].mode
        if any(entry.frozen is not None for entry in taken):
            batch = self._frozen_batch(taken[0])
            assert list(taken) == batch, f"the frozen batch {numbers(batch)} came back as {numbers(taken)}"
            return
        if mode is Mode.COALESCE:
            self._check_whole_groups(asked, taken)
        units = len({entry.group or entry.number for entry in taken}) if mode is Mode.COALESCE else len(taken)
        suspects = [entry for entry in taken if entry.suspected]
        if suspects:
            caps = {entry.cap for entry in suspects}
            assert len(caps) == 1, "suspects of different batches came together"
            assert units <= min(cap for cap in caps if cap is not None), "more suspects than their cap came together"
            assert mode is Mode.COALESCE or len(suspects) == len(taken), "suspects came together with others"

    def _check_whole_groups(self, asked: Asked, taken: Sequence[ModelEntry]) -> None:
        for entry in taken:
            if entry.group is None:
                continue
            waiting = self.model.of(asked.channel, State.PENDING)
            group = [other for other in waiting if other.group == entry.group and not self.model.gated(other)]
            assert set(group) <= set(taken), f"group {entry.group} was not taken whole"

    def _check_batch(self, asked: Asked, taken: Sequence[ModelEntry], may_go: Sequence[ModelEntry]) -> None:
        """Limits, one tenant, order inside the batch, and nothing younger before something older."""
        if taken[0].frozen is not None:
            return
        channel = self.model.channels[asked.channel]
        coalesced = channel.mode is Mode.COALESCE
        units = list(dict.fromkeys(entry.group or entry.number for entry in taken)) if coalesced else list(taken)
        assert len(units) <= asked.rows, "more rows than asked for"
        assert len(units) == 1 or sum(len(e.new.payload) for e in taken) <= asked.bytes, "more bytes than asked for"
        if channel.one_tenant or coalesced:
            assert len({entry.new.tenant_id for entry in taken}) == 1, "tenants were mixed"
        if channel.mode is Mode.STREAM:
            assert list(taken) == sorted(taken, key=lambda entry: entry.place), "a stream batch is not sorted by rank"
            if not taken[0].apart:
                self._check_oldest_first(asked, taken, may_go)
            return
        groups = list(dict.fromkeys(entry.group or entry.number for entry in taken))
        in_order = sorted(taken, key=lambda entry: (groups.index(entry.group or entry.number), entry.number))
        assert list(taken) == in_order, "groups are not together, or not in order"
        if channel.mode is Mode.ORDERED:
            self._check_runs(taken)

    def _check_runs(self, taken: Sequence[ModelEntry]) -> None:
        """G5: in front of every claimed entry of a group only claimed ones."""
        for entry in taken:
            if entry.group is not None:
                gap = set(self._earlier(entry)) - set(taken)
                assert not gap, f"{numbers(gap)} of group {entry.group} were passed over"

    def _check_oldest_first(self, asked: Asked, taken: Sequence[ModelEntry], may_go: Sequence[ModelEntry]) -> None:
        """Of each tenant the lowest ranks; and the batch is full as long as its tenants have more.

        It is full, too, when the next in turn does not fit, whoever's that is: nobody is passed over for being large.
        """
        usual = [entry for entry in may_go if not entry.apart]
        left = [entry for entry in usual if entry not in taken]
        for entry in taken:
            passed = [o for o in left if o.new.tenant_id == entry.new.tenant_id and o.place < entry.place]
            assert not passed, f"{numbers(passed)} rank before {entry.number} and were passed over"
        served = {entry.new.tenant_id for entry in taken}
        more = [entry for entry in left if entry.new.tenant_id in served]
        used = sum(len(entry.new.payload) for entry in taken)
        too_large = [entry for entry in left if used + len(entry.new.payload) > asked.bytes]
        full = len(taken) == asked.rows or too_large
        assert full or not more, f"{numbers(more)} would have had room"

    def _check_fairness(self, asked: Asked, taken: Sequence[ModelEntry], may_go: Sequence[ModelEntry]) -> None:
        """G8: with k tenants waiting, none waits for more than k claims."""
        served = {entry.new.tenant_id for entry in taken}
        fresh = asked.fresh is not None
        if asked.tenant is not None:
            self.waited.pop((asked.channel, fresh, asked.tenant), None)
            self.rivals.pop((asked.channel, fresh, asked.tenant), None)
            return
        waiting = set() if self._too_deep(asked) else {entry.new.tenant_id for entry in may_go}
        for tenant in {
            name for channel, kind, name in self.waited if (channel, kind) == (asked.channel, fresh)
        } | waiting:
            lane = (asked.channel, fresh, tenant)
            if tenant in served or tenant not in waiting:
                self.waited.pop(lane, None)
                self.rivals.pop(lane, None)
                continue
            self.waited[lane] += 1
            self.rivals[lane] |= waiting
            assert self.waited[lane] < len(self.rivals[lane]), f"tenant {tenant!r} was passed over too often"


def numbers(entries: Sequence[ModelEntry] | set[ModelEntry]) -> list[int]:
    """Entries by number, for messages."""
    return sorted(entry.number for entry in entries)
