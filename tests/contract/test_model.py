"""Both stores driven with the same steps, each beside a plain-Python model that is compared with it after every one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from carrick.entry import NewEntry, Outcome, OutcomeKind
from carrick.outbox.postgres import marks
from carrick.outbox.transitions import TRANSITIONS
from carrick.testing.claim_rules import Asked
from tests.contract.worlds import CHANNELS, GRID, PLENTY, World, blamed, postgres_driven, sqlite_driven

Draw = Callable[[st.SearchStrategy[Any]], Any]

picks = st.integers(0, 1_000_000)
claim_tenants = st.sampled_from([None, None, None, "", "a"])
scopes = st.sampled_from(["*", "tenant:a", "tenant:a", "principal:p", "principal:p"])
closers = st.sampled_from(["person", "destination", "failures"])
outcomes_given = st.sampled_from(list(OutcomeKind)).flatmap(
    lambda kind: st.sampled_from([GRID, 4 * GRID] if TRANSITIONS[kind].spends_attempt else [None, None, GRID]).map(
        lambda after: Outcome(kind=kind, after=after)
    )
)


@st.composite
def new_entries(draw: Draw, channels: Sequence[str], tenants: Sequence[str]) -> NewEntry:
    """Entries that meet: few tenants, groups, keys."""
    channel = draw(st.sampled_from(channels))
    delay = draw(st.sampled_from([None, None, None, GRID, 5 * GRID]))
    key = draw(st.sampled_from([None, None, None, None, "k", "l"]))
    return NewEntry(
        channel=channel,
        id=None if key is None else draw(st.sampled_from([None, None, UUID(int=1), UUID(int=2)])),
        event_type="e",
        payload=b"1" * draw(st.integers(1, 5)),
        key=key,
        tenant_id=draw(st.sampled_from(tenants)),
        group_key=draw(st.sampled_from([None, "g", "g", "h"])),
        principal=draw(st.sampled_from([None, None, "p", "q"])),
        priority=draw(st.sampled_from([0, 0, 0, 1, -1, 3])) if channel in ("stream", "single") else 0,
        delay_seconds=delay,
        max_wait_seconds=None if delay is None else draw(st.sampled_from([None, 2 * GRID, 8 * GRID])),
    )


STEPS = {
    "put": 8,
    "claim": 8,
    "finish": 6,
    "finish_all": 1,
    "renew": 1,
    "note": 2,
    "release": 1,
    "release_expired": 1,
    "let_time_pass": 6,
    "close_gate": 1,
    "open_gate": 2,
    "fail_gate": 2,
    "finish_and_claim": 3,
    "put_once": 1,
    "redrive": 1,
    "discard": 1,
    "prune": 1,
}
"""What may happen, and how often. One rule chooses: several would be switched off for whole runs at a time."""


class Outboxes(RuleBasedStateMachine):
    """The same steps for both stores."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.worlds = [World(sqlite_driven(self.folder)), World(postgres_driven())]

    @initialize(
        channels=st.lists(st.sampled_from([channel.name for channel in CHANNELS]), min_size=1, max_size=2, unique=True),
        tenants=st.sampled_from([[""], ["a"], ["", "a"], ["", "a", "b"]]),
    )
    def focus(self, channels: list[str], tenants: list[str]) -> None:
        """A run looks at few channels and tenants, so that much happens to each."""
        self.names = st.sampled_from(channels)
        self.new_entries = new_entries(channels, tenants)

    def teardown(self) -> None:
        for world in self.worlds:
            world.driven.close()

    @rule(step=st.sampled_from([name for name, weight in STEPS.items() for _ in range(weight)]), data=st.data())
    def step(self, step: str, data: st.DataObject) -> None:
        """Something happens, a moment after what happened before; then stores and models must agree."""
        drawn = getattr(self, step)(data.draw)
        for world in self.worlds:
            with blamed(world.driven, step, *drawn):
                world.model.tick()
                getattr(world, step)(*drawn)
                world.compare()

    def put(self, draw: Draw) -> tuple[Any, ...]:
        """One entry, or several in one transaction."""
        return draw(self.new_entries), draw(st.sampled_from([1, 2, 3, 6]))

    def put_once(self, draw: Draw) -> tuple[Any, ...]:
        """A request that may come again, the same or not."""
        news = draw(st.lists(self.new_entries, min_size=1, max_size=3))
        return draw(st.sampled_from("xyz")), draw(st.sampled_from("112")), news

    def claim(self, draw: Draw) -> tuple[Any, ...]:
        """A worker claims; whether it ever comes back is for later steps."""
        size = draw(st.sampled_from([1, 4, 9, *[PLENTY] * 5]))
        fresh = draw(st.sampled_from([None, None, None, 1.5 * GRID, 6.5 * GRID]))
        asked = Asked(draw(self.names), draw(st.integers(1, 6)), size, draw(claim_tenants), fresh)
        return asked, draw(st.sampled_from([GRID, 5 * GRID]))

    def finish_and_claim(self, draw: Draw) -> tuple[Any, ...]:
        pick, outcomes = self.finish(draw)
        asked, lease = self.claim(draw)
        return pick, draw(st.sampled_from([None, outcomes])), replace(asked, tenant=None), lease

    def finish(self, draw: Draw) -> tuple[Any, ...]:
        return draw(picks), draw(st.lists(st.one_of(outcomes_given, outcomes_given, st.none()), min_size=1, max_size=5))

    def finish_all(self, draw: Draw) -> tuple[Any, ...]:
        return (draw(picks),)

    def renew(self, draw: Draw) -> tuple[Any, ...]:
        return draw(picks), draw(st.sampled_from([GRID, 20 * GRID]))

    def note(self, draw: Draw) -> tuple[Any, ...]:
        about = st.one_of(st.none(), st.lists(picks, max_size=4))
        return draw(picks), draw(st.sampled_from([{"step": 1}, "text", 0])), draw(about)

    def release(self, draw: Draw) -> tuple[Any, ...]:
        return (draw(picks),)

    def release_expired(self, draw: Draw) -> tuple[Any, ...]:
        return draw(self.names), draw(st.sampled_from([0, 2 * GRID]))

    def let_time_pass(self, draw: Draw) -> tuple[Any, ...]:
        return (draw(st.sampled_from([GRID, GRID, 3 * GRID, 6 * GRID, 6 * GRID, 31 * GRID, 86_400])),)

    def close_gate(self, draw: Draw) -> tuple[Any, ...]:
        return draw(self.names), draw(scopes), draw(st.sampled_from([GRID, 10 * GRID, None])), draw(closers)

    def open_gate(self, draw: Draw) -> tuple[Any, ...]:
        closed = sorted(self.worlds[0].model.gates)
        channel, scope = draw(st.sampled_from(closed)) if closed else (draw(self.names), "*")
        return channel, scope, draw(st.sampled_from([None, None, "destination", "failures"]))

    def fail_gate(self, draw: Draw) -> tuple[Any, ...]:
        return draw(self.names), draw(st.sampled_from(["*", "*", "*", "tenant:a"])), draw(st.booleans())

    def discard(self, draw: Draw) -> tuple[Any, ...]:
        return draw(self.names), draw(st.lists(picks, min_size=1, max_size=8))

    def redrive(self, draw: Draw) -> tuple[Any, ...]:
        reason, max_rows = draw(st.sampled_from([None, "rejected", "crash_loop"])), draw(st.sampled_from([None, 1]))
        return draw(self.names), reason, max_rows, draw(st.sampled_from([0, GRID]))

    def prune(self, draw: Draw) -> tuple[Any, ...]:
        return (draw(self.names),)


@pytest.fixture(autouse=True)
def _no_marks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Marks are hints that may hide an entry for a second of real time; here every claim looks everywhere."""
    monkeypatch.setattr(marks, "FULL_LOOK_EVERY_SECONDS", 0.0)
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(Outboxes, "folder", Path(folder), raising=False)
        yield


BASE = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, report_multiple_bugs=False)


@pytest.mark.timeout(300)
def test_both_stores_do_what_the_model_says() -> None:
    """The same 3,200 steps in every run: new ones are for the long version to find."""
    run_state_machine_as_test(
        Outboxes, settings=settings(BASE, max_examples=40, stateful_step_count=80, derandomize=True, database=None)
    )


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_both_stores_do_what_the_model_says_for_long() -> None:
    """25,000 steps, other ones in every run."""
    run_state_machine_as_test(Outboxes, settings=settings(BASE, max_examples=250, stateful_step_count=100))
