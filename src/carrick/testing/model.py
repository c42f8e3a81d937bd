"""The rules of the engine in plain Python: what each operation does to entries. A model for tests, not a store.

It follows the documents, not the SQL. What a claim may take is judged in `claim_rules`; this module applies it.
Times are seconds on the model's own clock. Every operation happens a moment after the one before, as in a database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from carrick.entry import ClosedBy, NewEntry, Outcome, OutcomeKind, State
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.store import RECEIPT_DAYS
from carrick.outbox.transitions import CRASHES_UNTIL_DEAD, TRANSITIONS, after_attempt

MOMENT = 1e-6
SECONDS_PER_DAY = 86_400
SECONDS_PER_PRIORITY_STEP = 600


@dataclass(eq=False)
class ModelEntry:
    """One entry. `number` is its place in the order of puts."""

    number: int
    new: NewEntry
    due: float
    state: State = State.PENDING
    delayed: bool = False
    max_wait_at: float | None = None
    attempts: int = 0
    crashes: int = 0
    troubled: bool = False
    cap: int | None = None
    frozen: int | None = None
    intent: Any = None
    reason: str | None = None
    ended_at: float = 0.0

    @property
    def rank(self) -> float:
        """The order of claims: ten minutes of waiting outweigh one step of priority."""
        return self.due - SECONDS_PER_PRIORITY_STEP * self.new.priority

    @property
    def place(self) -> tuple[float, int]:
        """Rank, and the order of puts between equals."""
        return (self.rank, self.number)

    @property
    def group(self) -> tuple[str, str] | None:
        """The group it belongs to, of its tenant."""
        return None if self.new.group_key is None else (self.new.tenant_id, self.new.group_key)

    @property
    def suspected(self) -> bool:
        """It was there when a worker died, and has not been tried to the end since."""
        return self.state is State.PENDING and self.cap is not None and self.frozen is None

    @property
    def apart(self) -> bool:
        """It comes back apart from the others: suspected, or part of a frozen batch."""
        return self.state is State.PENDING and (self.cap is not None or self.frozen is not None)


@dataclass
class ModelLease:
    """One claimed batch."""

    channel: str
    entries: list[ModelEntry]
    units: int
    expires_at: float
    intent: Any = None
    noted: set[int] | None = None

    def intent_of(self, entry: ModelEntry) -> Any:
        """What was noted about that entry."""
        return self.intent if self.noted is None or entry.number in self.noted else None


@dataclass
class ModelGate:
    """One gate."""

    until: float
    failures: int = 0
    closed_by: ClosedBy = "person"


@dataclass
class ModelReceipt:
    """A request that was done."""

    body_hash: bytes
    entries: list[int]
    made_at: float


@dataclass
class Model:
    """All channels, entries, leases, gates and receipts."""

    channels: dict[str, Channel]
    now: float = 0.0
    entries: list[ModelEntry] = field(default_factory=list)
    leases: dict[int, ModelLease] = field(default_factory=dict)
    gates: dict[tuple[str, str], ModelGate] = field(default_factory=dict)
    receipts: dict[str, ModelReceipt] = field(default_factory=dict)
    _frozen: count[int] = field(default_factory=count)

    def shift(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def tick(self) -> None:
        """The moment between two operations."""
        self.now += MOMENT

    def of(self, channel: str, *states: State) -> list[ModelEntry]:
        """The channel's entries in those states, in the order of puts."""
        return [entry for entry in self.entries if entry.new.channel == channel and entry.state in states]

    def given(self, new: NewEntry) -> ModelEntry | None:
        """The entry that this one is again, None for a new one. Raises Reused for a key or an id with other content."""
        known = self._known_key(new)
        if known is None and new.id is not None and any(entry.new.id == new.id for entry in self.entries):
            raise Reused
        if known is not None and _content(known.new) != _content(new):
            raise Reused
        return known

    def _known_key(self, new: NewEntry) -> ModelEntry | None:
        """The entry that has the key already. Prune forgets keys (remember_keys_days is not modelled)."""
        if new.key is None:
            return None
        wanted = (new.channel, new.tenant_id, new.key)
        for entry in self.entries:
            if (entry.new.channel, entry.new.tenant_id, entry.new.key) == wanted:
                return entry
        return None

    def put(self, new: NewEntry) -> ModelEntry:
        """A new entry, due after its delay; debounced no longer than max_wait."""
        delay = new.delay_seconds or 0.0
        longest = delay if new.max_wait_seconds is None else new.max_wait_seconds
        entry = ModelEntry(len(self.entries), new, self.now + min(delay, longest))
        entry.delayed = new.delay_seconds is not None
        if new.max_wait_seconds is not None:
            entry.max_wait_at = self.now + new.max_wait_seconds
        self.entries.append(entry)
        return entry

    def put_once(self, key: str, body_hash: bytes, news: Sequence[NewEntry]) -> list[int]:
        """The entries of a request that is done once. Raises Reused, and then nothing is put."""
        receipt = self.receipts.get(key)
        if receipt is not None:
            if receipt.body_hash != body_hash:
                raise Reused
            return receipt.entries
        before = len(self.entries)
        try:
            numbers = [(self.given(new) or self.put(new)).number for new in news]
        except Reused:
            del self.entries[before:]
            raise
        self.receipts[key] = ModelReceipt(body_hash, numbers, self.now)
        return numbers

    def told(self, taken: Sequence[ModelEntry]) -> list[Any]:
        """The intent that comes with each: its own; else that of a doubt in its group that waits behind a gate."""
        if not taken or taken[0].frozen is not None or self.channels[taken[0].new.channel].mode is not Mode.COALESCE:
            return [entry.intent for entry in taken]
        waiting = [other for other in self.of(taken[0].new.channel, State.PENDING) if other.frozen is not None]
        open_intents: dict[Any, Any] = {}
        for other in waiting:
            if other.group is not None and other.intent is not None:
                open_intents.setdefault(other.group, other.intent)
        return [open_intents.get(entry.group) if entry.intent is None else entry.intent for entry in taken]

    def take(self, channel: str, token: int, taken: Sequence[ModelEntry], lease_seconds: float) -> None:
        """What a claim took is held under its lease. A frozen batch is one unit, a coalesced group as well.

        Through a half-open gate it goes as a probe, and the gate is closed behind it.
        """
        if not taken:
            return
        if self.half_open(channel):
            gate = self.gates[channel, "*"]
            gate.until, gate.closed_by = self.now + lease_seconds, "failures"
        units = len(taken)
        if taken[0].frozen is not None:
            units = 1
        elif self.channels[channel].mode is Mode.COALESCE:
            units = len({entry.group or entry.number for entry in taken})
        for entry in taken:
            entry.state = State.CLAIMED
        self.leases[token] = ModelLease(channel, list(taken), units, self.now + lease_seconds)

    def return_expired(self, channel: str, older_than: float = 0.0) -> int:
        """Leases that ended: their entries come back in smaller batches, and die of the fifth crash alone."""
        ended = [
            token
            for token, lease in self.leases.items()
            if lease.channel == channel and lease.expires_at <= self.now - older_than
        ]
        returned = 0
        for token in ended:
            lease = self.leases.pop(token)
            returned += len(lease.entries)
            self._expire(lease)
        return returned

    def _expire(self, lease: ModelLease) -> None:
        if self.channels[lease.channel].mode is Mode.COALESCE and lease.intent is not None:
            noted = [entry for entry in lease.entries if lease.intent_of(entry) is not None]
            self._freeze([entry for entry in noted if entry.frozen is None], by_group=True)
        for entry in lease.entries:
            self._wait_again(entry)
            entry.troubled = True
            entry.crashes += lease.units == 1
            entry.cap = max(1, lease.units // 2)
            noted = lease.intent_of(entry)
            entry.intent = entry.intent if noted is None else noted
            if entry.crashes >= CRASHES_UNTIL_DEAD:
                self._end(entry, State.DEAD, "crash_loop")

    def _freeze(self, entries: Iterable[ModelEntry], *, by_group: bool) -> None:
        batches: dict[Any, int] = {}
        for entry in entries:
            unit = (entry.group or entry.number) if by_group else None
            entry.frozen = batches.setdefault(unit, next(self._frozen))

    def finish(self, token: int, outcomes: Mapping[int, Outcome]) -> dict[int, State]:
        """Outcomes by entry number; the new states of those that are held under the token."""
        lease = self.leases.get(token)
        if lease is None:
            return {}
        held = [entry for entry in lease.entries if entry.number in outcomes]
        for entry in held:
            self._apply(entry, lease, outcomes[entry.number])
        unsure = [e for e in held if outcomes[e.number].kind is OutcomeKind.UNSURE and e.state is State.PENDING]
        self._freeze(unsure, by_group=self.channels[lease.channel].mode is Mode.COALESCE)
        lease.entries = [entry for entry in lease.entries if entry.number not in outcomes]
        if not lease.entries:
            del self.leases[token]
        return {entry.number: entry.state for entry in held}

    def _apply(self, entry: ModelEntry, lease: ModelLease, outcome: Outcome) -> None:
        transition = TRANSITIONS[outcome.kind]
        channel = self.channels[lease.channel]
        entry.attempts += transition.spends_attempt
        state = after_attempt(outcome.kind, entry.attempts, channel.max_attempts)
        if state is not State.PENDING:
            rejected = outcome.kind is OutcomeKind.REJECTED
            self._end(entry, state, None if state is State.DELIVERED else "rejected" if rejected else "max_attempts")
            return
        self._wait_again(entry)
        if outcome.after is not None:
            entry.due = max(entry.due, self.now + outcome.after)
        if transition.spends_attempt:
            entry.due = self.now + (outcome.after or 0.0)
            entry.troubled, entry.crashes, entry.cap, entry.frozen = True, 0, None, None
            noted = lease.intent_of(entry)
            entry.intent = (entry.intent if noted is None else noted) if transition.freezes else None

    def _wait_again(self, entry: ModelEntry) -> None:
        """It has been due once: what it waited for is over."""
        entry.state = State.PENDING
        entry.delayed = False
        entry.max_wait_at = None

    def _end(self, entry: ModelEntry, state: State, reason: str | None) -> None:
        entry.state, entry.reason, entry.ended_at = state, reason, self.now
        entry.troubled, entry.cap, entry.frozen, entry.intent = False, None, None, None

    def release(self, token: int) -> int:
        """Everything under the token goes back unspent."""
        lease = self.leases.get(token)
        return 0 if lease is None else len(self.finish(token, {e.number: Outcome.released() for e in lease.entries}))

    def renew(self, token: int, seconds: float) -> int:
        """The lease ends that many seconds from now."""
        lease = self.leases.get(token)
        if lease is None:
            return 0
        lease.expires_at = self.now + seconds
        return len(lease.entries)

    def note(self, token: int, intent: Any, numbers: set[int] | None = None) -> int:
        """What the delivery is about to do, with these entries (None: all)."""
        lease = self.leases.get(token)
        if lease is None:
            return 0
        lease.intent, lease.noted = intent, numbers
        return len(lease.entries)

    def close_gate(self, channel: str, scope: str, seconds: float | None, closed_by: ClosedBy) -> None:
        """Closed for a time, or until opened; failures are not forgotten."""
        until = float("inf") if seconds is None else self.now + seconds
        gate = self.gates.setdefault((channel, scope), ModelGate(self.now))
        lengthens = closed_by == gate.closed_by == "destination" and gate.until < until
        if closed_by == "person" or gate.closed_by == "failures" or gate.until <= self.now or lengthens:
            gate.until, gate.closed_by = until, closed_by

    def open_gate(self, channel: str, scope: str, closed_by: ClosedBy | None) -> None:
        """Open again."""
        gate = self.gates.get((channel, scope))
        if gate is not None and (closed_by in (None, gate.closed_by) or gate.until <= self.now):
            del self.gates[channel, scope]

    def fail_gate(self, channel: str, scope: str, *, probe: bool) -> ModelGate | None:
        """The gate whose failures this one counts for, None where it changes nothing. It is for the caller to close."""
        gate = self.gates.setdefault((channel, scope), ModelGate(self.now))
        if gate.until > self.now and not (probe and gate.closed_by == "failures"):
            return None
        gate.failures, gate.closed_by = gate.failures + 1, "failures"
        return gate

    def half_open(self, channel: str) -> bool:
        """Failures closed the channel's gate, and its time is up: one entry, or group, may try."""
        gate = self.gates.get((channel, "*"))
        return gate is not None and gate.failures > 0 and gate.until <= self.now

    def closed(self, channel: str, scope: str) -> bool:
        """Whether that gate holds now."""
        gate = self.gates.get((channel, scope))
        return gate is not None and gate.until > self.now

    def gated(self, entry: ModelEntry) -> bool:
        """Whether a closed gate holds the entry."""
        scopes = ["*", f"tenant:{entry.new.tenant_id}", f"principal:{entry.new.principal}"]
        return any(self.closed(entry.new.channel, scope) for scope in scopes)

    def redrive(self, channel: str, *, reason: str | None, max_rows: int | None, step: float) -> int:
        """Dead entries, those that died first, start again; each `step` seconds after the one before."""
        dead = [entry for entry in self.of(channel, State.DEAD) if reason is None or entry.reason == reason]
        dead.sort(key=lambda entry: (entry.ended_at, entry.number))
        for place, entry in enumerate(dead[:max_rows]):
            self._wait_again(entry)
            entry.due = self.now + place * step
            entry.attempts, entry.crashes, entry.reason = 0, 0, None
        return len(dead[:max_rows])

    def discard(self, channel: str, numbers: Iterable[int]) -> int:
        """Those of them that are dead in this channel are removed; how many."""
        gone = [entry for entry in self.of(channel, State.DEAD) if entry.number in numbers]
        for entry in gone:
            self.entries[entry.number] = PRUNED
        return len(gone)

    def prune(self, channel: str) -> list[int]:
        """The numbers of ended entries that retention removes; old receipts go as well."""
        oldest = self.now - RECEIPT_DAYS * SECONDS_PER_DAY
        self.receipts = {key: receipt for key, receipt in self.receipts.items() if receipt.made_at >= oldest}
        options = self.channels[channel]
        keep = {State.DELIVERED: options.retention_days, State.DEAD: options.dead_retention_days}
        gone = [
            entry
            for entry in self.of(channel, *keep)
            if entry.ended_at <= self.now - keep[entry.state] * SECONDS_PER_DAY
        ]
        for entry in gone:
            self.entries[entry.number] = PRUNED
        return [entry.number for entry in gone]


class Reused(Exception):
    """A key, or an id, came again with other content."""


def _content(new: NewEntry) -> tuple[Any, ...]:
    return (new.event_type, new.payload, new.group_key, new.principal)


PRUNED = ModelEntry(-1, NewEntry(channel="", event_type="", payload=b"", tenant_id="\x00"), 0.0, State.DELIVERED)
"""Stands where an entry was; belongs to no channel."""
