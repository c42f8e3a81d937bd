"""Sessions, credentials nobody needs, board links and the memory of submissions: what stays, what goes, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from carrick.entry import Outcome
from carrick.outbox.outbox import Outbox
from carrick.relay.threads import Threads
from carrick.testing import Clock
from carrick_scoreboard.delivery import SCORES
from carrick_scoreboard.holding import Holding
from carrick_scoreboard.store.boards import Boards
from carrick_scoreboard.store.credentials import SealedTokens, StoredCredentials, WritableSection
from carrick_scoreboard.store.devices import Devices
from carrick_scoreboard.store.scores import CHANNEL, Applied, InDoubt, NewUpdate, Reused, Scores, Submission, Update
from carrick_scoreboard.store.sessions import SESSION_SECONDS, Sessions
from carrick_scoreboard.store.tables import Tables

ANN, BOB, DAY = 7, 8, 86_400
SECTION = WritableSection(id=40104, name="Scouts", group_name="1st Ashmere")
TOKENS, READ_ONLY = SealedTokens(b"write", b"r", 3600), SealedTokens(b"read", b"r", 3600)
COOKIE = "c" * 64


@pytest.fixture
def stored(tables: Tables) -> StoredCredentials:
    stored = StoredCredentials(tables)
    stored.save(ANN, "Ann", "", TOKENS, [SECTION])
    return stored


@pytest.fixture
def sessions(tables: Tables, stored: StoredCredentials) -> Sessions:
    sessions = Sessions(tables)
    sessions.add(COOKIE, ANN)
    return sessions


@pytest.fixture
def outbox(url: str) -> Iterator[Outbox]:
    with Outbox.connect(url) as outbox:
        outbox.store.declare(SCORES)
        yield outbox


def give(tables: Tables, outbox: Outbox, key: str = "k", points: int = 5) -> Submission:
    update = NewUpdate(patrol_id="72699", points=points)
    return Scores(tables).submit(outbox, ANN, key, str(points) * 64, SECTION.id, [update], delay=None)


def test_a_session_that_is_used_lasts_on(sessions: Sessions, clock: Clock) -> None:
    for _ in range(3):
        clock.shift(SESSION_SECONDS - DAY)
        assert sessions.get(COOKIE) is not None
    clock.shift(SESSION_SECONDS + 1)
    assert sessions.get(COOKIE) is None
    assert sessions.tidy() == 1


def test_a_sign_out_ends_this_session_only(sessions: Sessions) -> None:
    sessions.add("d" * 64, ANN)
    assert sessions.end(COOKIE)
    assert not sessions.end(COOKIE)
    assert sessions.get(COOKIE) is None
    assert sessions.get("d" * 64) is not None


def test_a_session_remembers_its_section_and_knows_a_revocation(sessions: Sessions, stored: StoredCredentials) -> None:
    sessions.select(COOKIE, 40104)
    stored.revoke(ANN, 1)
    session = sessions.get(COOKIE)
    assert session is not None
    assert session.selected_section_id == 40104
    assert session.revoked_at is not None


def test_a_sign_in_that_may_not_write_leaves_the_one_that_may(stored: StoredCredentials) -> None:
    assert not stored.save(ANN, "Ann", "", READ_ONLY)
    kept = stored.get(ANN)
    assert kept is not None
    assert kept.osm_access_token == b"write"
    assert stored.writable(ANN) == [SECTION]


def test_a_sign_in_that_may_not_write_replaces_one_that_was_revoked(stored: StoredCredentials) -> None:
    stored.revoke(ANN, 1)
    assert stored.save(ANN, "Ann", "", READ_ONLY)
    assert stored.writable(ANN) == []


def test_a_credential_that_nobody_needs_goes_after_a_week(stored: StoredCredentials, clock: Clock) -> None:
    clock.shift(6 * DAY)
    assert stored.clean(7) == []
    clock.shift(2 * DAY)
    assert stored.clean(7) == [ANN]
    assert stored.get(ANN) is None


def test_a_credential_that_was_used_lately_stays(stored: StoredCredentials, clock: Clock) -> None:
    clock.shift(6 * DAY)
    stored.used(ANN)
    clock.shift(6 * DAY)
    assert stored.clean(7) == []


@pytest.mark.parametrize("needed_by", ["session", "device", "points"])
def test_a_credential_that_something_needs_stays(
    stored: StoredCredentials, tables: Tables, outbox: Outbox, devices: Devices, clock: Clock, needed_by: str
) -> None:
    clock.shift(30 * DAY)
    if needed_by == "session":
        Sessions(tables).add(COOKIE, ANN)
    elif needed_by == "points":
        give(tables, outbox)
    else:
        code = devices.begin("a" * 64, "BCDFGHJK", "matrix", address="::1", country="", poll_seconds=5, seconds=300)
        assert code is not None
        devices.approve(code, osm_user_id=ANN, section_id=1, name="Hall", term_id=None, term_end_date=None)
    assert stored.clean(7) == []


def test_submissions_are_remembered_as_long_as_their_points_are_in_the_history(
    stored: StoredCredentials, tables: Tables, outbox: Outbox, clock: Clock
) -> None:
    scores = Scores(tables)
    first = give(tables, outbox)
    (update,) = scores.updates(first.id)
    outbox.finish_all(outbox.claim(CHANNEL).token)
    scores.settle([Applied(update.entry_id, 10, 15)], write_id=None)
    clock.shift(39 * DAY)
    outbox.store.prune(CHANNEL)
    assert scores.tidy(days=40) == 0
    assert give(tables, outbox).id == first.id
    with pytest.raises(Reused):
        give(tables, outbox, points=6)
    clock.shift(2 * DAY)
    assert scores.tidy(days=40) == 1
    assert scores.history(SECTION.id, 10) == []
    assert give(tables, outbox).id != first.id


def test_points_whose_entry_is_still_there_are_not_forgotten(
    stored: StoredCredentials, tables: Tables, outbox: Outbox, clock: Clock
) -> None:
    scores = Scores(tables)
    (update,) = scores.updates(give(tables, outbox).id)
    scores.settle([Applied(update.entry_id, 10, 15)], write_id=None)
    clock.shift(60 * DAY)
    assert scores.tidy(days=40) == 0
    assert [line.id for line in scores.history(SECTION.id, 10)] == [update.id]


def test_an_undo_stays_in_the_history_when_what_it_took_back_is_forgotten(
    stored: StoredCredentials, tables: Tables, outbox: Outbox, clock: Clock
) -> None:
    scores = Scores(tables)
    (given,) = scores.updates(give(tables, outbox).id)
    scores.settle([Applied(given.entry_id, 10, 15)], write_id=None)
    clock.shift(39 * DAY)
    undo = [NewUpdate(patrol_id="72699", points=-5, undo_of=given.id)]
    (taken,) = scores.updates(scores.submit(outbox, ANN, "undo", "u" * 64, SECTION.id, undo, delay=None).id)
    scores.settle([Applied(taken.entry_id, 15, 10)], write_id=None)
    outbox.finish_all(outbox.claim(CHANNEL).token)
    clock.shift(2 * DAY)
    outbox.store.prune(CHANNEL)
    assert scores.tidy(days=40) == 1
    assert [line.id for line in scores.history(SECTION.id, 10)] == [taken.id]


def test_submissions_with_points_that_wait_are_not_forgotten(
    stored: StoredCredentials, tables: Tables, outbox: Outbox, clock: Clock
) -> None:
    first = give(tables, outbox)
    clock.shift(60 * DAY)
    assert Scores(tables).tidy(days=30) == 0
    assert give(tables, outbox).id == first.id


def test_an_update_is_applied_once(stored: StoredCredentials, tables: Tables, outbox: Outbox) -> None:
    scores = Scores(tables)
    (update,) = scores.updates(give(tables, outbox).id)
    write = scores.doubt(SECTION.id, "72699", [update.entry_id], 10, 15)
    scores.settle([Applied(update.entry_id, 10, 15)], write_id=write)
    scores.settle([Applied(update.entry_id, 20, 25)], write_id=write)
    (line,) = scores.history(SECTION.id, 10)
    assert (line.previous_score, line.new_score) == (10, 15)


def test_who_comes_too_late_neither_hides_nor_ends_the_doubt_of_a_later_write(
    stored: StoredCredentials, tables: Tables, outbox: Outbox
) -> None:
    scores = Scores(tables)
    (update,) = scores.updates(give(tables, outbox).id)
    mine = [update.entry_id]
    first = scores.doubt(SECTION.id, "72699", mine, 10, 15)
    scores.settle(not_applied=mine, write_id=first)
    scores.doubt(SECTION.id, "72699", mine, 20, 25)
    with pytest.raises(InDoubt):
        scores.doubt(SECTION.id, "72699", mine, 10, 15)
    scores.settle(not_applied=mine, write_id=first)
    scores.settle(unclear={update.entry_id: 99}, write_id=first)
    (doubt,) = scores.doubts(SECTION.id)
    assert (doubt.base, doubt.target, doubt.found) == (20, 25, None)


def test_points_that_came_to_nothing_together_are_not_applied_when_one_of_them_is_over(
    stored: StoredCredentials, tables: Tables, outbox: Outbox
) -> None:
    scores = Scores(tables)
    updates = [update for key in "ab" for update in scores.updates(give(tables, outbox, key).id)]
    scores.settle([Applied(updates[1].entry_id, 10, 15)], write_id=None)
    with pytest.raises(InDoubt):
        scores.settle([Applied(update.entry_id, 10, 10) for update in updates], write_id=None)
    assert len(scores.history(SECTION.id, 10)) == 1


def test_updates_whose_entries_are_gone_are_given_up_but_not_while_osm_may_have_the_points(
    stored: StoredCredentials, tables: Tables, outbox: Outbox
) -> None:
    scores = Scores(tables)
    (update,) = scores.updates(give(tables, outbox).id)
    batch = outbox.claim(CHANNEL)
    write = scores.doubt(SECTION.id, "72699", [update.entry_id], 10, 15)
    outbox.finish(batch.token, {update.entry_id: Outcome.rejected("no")})
    outbox.store.discard(CHANNEL, [update.entry_id])
    scores.tidy(days=30)
    assert [line.is_open for line in scores.unfinished(ANN)] == [True]
    scores.settle(not_applied=[update.entry_id], write_id=write)
    scores.tidy(days=30)
    assert scores.unfinished(ANN) == []


def test_points_taken_back_twice_because_the_first_time_seemed_lost_are_both_in_the_history(
    stored: StoredCredentials, tables: Tables, outbox: Outbox
) -> None:
    scores = Scores(tables)
    (given,) = scores.updates(give(tables, outbox).id)
    outbox.finish_all(outbox.claim(CHANNEL).token)
    scores.settle([Applied(given.entry_id, 10, 15)], write_id=None)

    def take_back(key: str) -> Update:
        undo = [NewUpdate(patrol_id="72699", points=-5, undo_of=given.id)]
        submission = scores.submit(outbox, ANN, key, "d" * 64, SECTION.id, undo, delay=None)
        (update,) = scores.updates(submission.id)
        return update

    lost = take_back("first")
    batch = outbox.claim(CHANNEL)
    write = scores.doubt(SECTION.id, "72699", [lost.entry_id], 15, 10)
    outbox.finish(batch.token, {lost.entry_id: Outcome.rejected("no")})
    outbox.store.discard(CHANNEL, [lost.entry_id])
    (removed,) = scores.unfinished(ANN)
    assert scores.discard(removed)
    again = take_back("second")
    scores.settle([Applied(lost.entry_id, 15, 10)], write_id=write)
    scores.settle([Applied(again.entry_id, 10, 5)], write_id=None)
    newest, before, first = scores.history(SECTION.id, 10)
    assert [newest.undo_of, before.undo_of, first.undone_by] == [given.id, None, again.id]


def test_a_board_link_works_until_it_is_ended_by_its_section(tables: Tables) -> None:
    boards = Boards(tables)
    boards.add("b" * 64, SECTION.id, ANN)
    assert not boards.revoke("b" * 64, 1)
    link = boards.get("b" * 64)
    assert link is not None
    assert (link.section_id, link.osm_user_id) == (SECTION.id, ANN)
    assert boards.revoke("b" * 64, SECTION.id)
    assert boards.get("b" * 64) is None


def test_a_gate_that_a_dying_process_left_closed_is_opened_for_who_has_signed_in(
    stored: StoredCredentials, outbox: Outbox
) -> None:
    async def main() -> None:
        with closing(Threads(1)) as threads:
            holding = Holding(outbox.store, stored, threads)
            stored.revoke(ANN, 1)
            await holding.revoked(ANN)
            await holding.revoked(BOB)
            await holding.hold(9, 60, "rate_limited")
            assert await holding.reconcile() == 0
            stored.save(ANN, "Ann", "", TOKENS, [SECTION])
            assert await holding.reconcile() == 1
            assert {gate.scope for gate in outbox.store.gates(SCORES.name)} == {f"principal:{BOB}", "principal:9"}

    asyncio.run(main())


def test_neither_a_limit_nor_a_sign_in_shortens_what_holds_a_leader_for_longer(
    outbox: Outbox, stored: StoredCredentials
) -> None:
    async def main() -> None:
        with closing(Threads(1)) as threads:
            holding = Holding(outbox.store, stored, threads)
            stored.revoke(ANN, 1)
            await holding.revoked(ANN)
            await holding.hold(ANN, 60, "rate_limited")
            outbox.store.close_gate(SCORES.name, f"principal:{BOB}", None, "closed by hand")
            await holding.revoked(BOB)
            await holding.signed_in(BOB)
            gates = {gate.scope: (gate.reason, gate.closed_until) for gate in outbox.store.gates(SCORES.name)}
            assert gates == {
                f"principal:{ANN}": ("auth_revoked", None),
                f"principal:{BOB}": ("closed by hand", None),
            }

    asyncio.run(main())


def test_a_board_link_ends_after_its_days(tables: Tables, clock: Clock) -> None:
    boards = Boards(tables)
    boards.add("b" * 64, SECTION.id, ANN)
    clock.shift(39 * DAY)
    assert boards.tidy(days=40) == 0
    clock.shift(2 * DAY)
    assert boards.tidy(days=40) == 1
    assert boards.get("b" * 64) is None
