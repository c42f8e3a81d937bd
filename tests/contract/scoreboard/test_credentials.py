"""Credentials at rest: every change names the generation it replaces, and one at a time refreshes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from carrick.testing import Clock
from carrick_scoreboard.store.credentials import SealedTokens, StoredCredential, StoredCredentials
from carrick_scoreboard.store.tables import Tables

ANN, BOB = 7, 8
FIRST, SECOND, THIRD = (SealedTokens(f"a{n}".encode(), f"r{n}".encode(), 3600) for n in (1, 2, 3))
LEASE = 30.0


@pytest.fixture
def stored(tables: Tables) -> StoredCredentials:
    stored = StoredCredentials(tables)
    stored.save(ANN, "Ann", "ann@example.org", FIRST)
    return stored


def of(stored: StoredCredentials, user: int = ANN) -> StoredCredential:
    credential = stored.get(user)
    assert credential is not None
    return credential


def held(stored: StoredCredentials) -> tuple[bytes, bytes, int]:
    credential = of(stored)
    return credential.osm_access_token, credential.osm_refresh_token, credential.generation


def test_a_sign_in_is_kept_with_how_long_it_is_good(stored: StoredCredentials, clock: Clock) -> None:
    credential = of(stored)
    assert (credential.osm_user_name, credential.osm_email) == ("Ann", "ann@example.org")
    assert held(stored) == (b"a1", b"r1", 1)
    assert 3590 < credential.left_seconds <= 3600
    assert (credential.revoked_at, credential.last_used_at, credential.refreshing_by) == (None, None, None)
    clock.shift(3000)
    assert 590 < of(stored).left_seconds <= 600


def test_a_user_who_never_signed_in_has_none(stored: StoredCredentials) -> None:
    assert stored.get(BOB) is None
    assert not stored.begin_refresh(BOB, 1, "a", LEASE)
    assert not stored.revoke(BOB, 1)


def test_a_second_sign_in_replaces_tokens_and_name_and_keeps_since_when(
    stored: StoredCredentials, clock: Clock
) -> None:
    first = of(stored)
    clock.shift(60)
    stored.save(ANN, "Ann B", "ann.b@example.org", SECOND)
    second = of(stored)
    assert held(stored) == (b"a2", b"r2", 2)
    assert (second.osm_user_name, second.osm_email) == ("Ann B", "ann.b@example.org")
    assert second.created_at == first.created_at
    assert second.updated_at - first.updated_at >= timedelta(seconds=60)


def test_a_name_that_no_database_can_hold_is_kept_as_far_as_it_goes(stored: StoredCredentials) -> None:
    stored.save(BOB, "B\0b\udce9" + "x" * 999, "", FIRST)
    assert of(stored, BOB).osm_user_name == "B?b?" + "x" * 251


def test_one_at_a_time_refreshes(stored: StoredCredentials, clock: Clock) -> None:
    assert stored.begin_refresh(ANN, 1, "replica-1", LEASE)
    assert not stored.begin_refresh(ANN, 1, "replica-2", LEASE)
    assert of(stored).refreshing_by == "replica-1"
    clock.shift(LEASE - 5)
    assert not stored.begin_refresh(ANN, 1, "replica-2", LEASE)


def test_a_refresh_that_never_ended_is_taken_by_another_after_its_time(stored: StoredCredentials, clock: Clock) -> None:
    stored.begin_refresh(ANN, 1, "replica-1", LEASE)
    clock.shift(LEASE + 1)
    assert stored.begin_refresh(ANN, 1, "replica-2", LEASE)
    assert of(stored).refreshing_by == "replica-2"


def test_what_a_refresh_gave_replaces_the_tokens_and_ends_the_refresh(stored: StoredCredentials) -> None:
    stored.begin_refresh(ANN, 1, "replica-1", LEASE)
    assert stored.end_refresh(ANN, 1, SECOND)
    assert held(stored) == (b"a2", b"r2", 2)
    assert (of(stored).refreshing_by, of(stored).refresh_ends_at) == (None, None)
    assert not stored.begin_refresh(ANN, 1, "replica-2", LEASE), "that generation has been refreshed"
    assert stored.begin_refresh(ANN, 2, "replica-2", LEASE)


def test_what_a_refresh_gave_comes_too_late_after_a_sign_in(stored: StoredCredentials) -> None:
    stored.begin_refresh(ANN, 1, "replica-1", LEASE)
    stored.save(ANN, "Ann", "", SECOND)
    assert not stored.end_refresh(ANN, 1, THIRD)
    assert held(stored) == (b"a2", b"r2", 2)
    assert of(stored).refreshing_by is None


def test_of_two_results_for_one_generation_the_first_counts(stored: StoredCredentials) -> None:
    assert stored.end_refresh(ANN, 1, SECOND)
    assert not stored.end_refresh(ANN, 1, THIRD)
    assert held(stored) == (b"a2", b"r2", 2)


def test_a_refresh_is_given_back_by_who_has_it_only(stored: StoredCredentials) -> None:
    stored.begin_refresh(ANN, 1, "replica-1", LEASE)
    stored.drop_refresh(ANN, "replica-2")
    assert of(stored).refreshing_by == "replica-1"
    stored.drop_refresh(ANN, "replica-1")
    assert stored.begin_refresh(ANN, 1, "replica-2", LEASE)


def test_a_revocation_is_news_once_and_ends_the_refresh(stored: StoredCredentials) -> None:
    stored.begin_refresh(ANN, 1, "replica-1", LEASE)
    assert stored.revoke(ANN, 1)
    revoked = of(stored)
    assert revoked.revoked_at is not None
    assert revoked.refreshing_by is None
    assert not stored.revoke(ANN, 1)
    assert not stored.begin_refresh(ANN, 1, "replica-1", LEASE)


def test_a_revocation_of_older_tokens_changes_nothing(stored: StoredCredentials) -> None:
    stored.end_refresh(ANN, 1, SECOND)
    assert not stored.revoke(ANN, 1)
    assert of(stored).revoked_at is None


def test_a_sign_in_ends_a_revocation(stored: StoredCredentials) -> None:
    stored.revoke(ANN, 1)
    stored.save(ANN, "Ann", "", SECOND)
    assert of(stored).revoked_at is None
    assert stored.begin_refresh(ANN, 2, "replica-1", LEASE)


def test_who_was_refused_because_another_had_just_refreshed_does_not_sign_the_user_out(
    stored: StoredCredentials, clock: Clock
) -> None:
    stored.begin_refresh(ANN, 1, "slow", LEASE)
    clock.shift(LEASE + 1)
    stored.begin_refresh(ANN, 1, "second", LEASE)
    assert stored.revoke(ANN, 1), "OSM refused the second one: the token was used"
    assert stored.end_refresh(ANN, 1, SECOND)
    assert held(stored) == (b"a2", b"r2", 2)
    assert of(stored).revoked_at is None


def test_a_use_is_written_down_once_in_ten_minutes(stored: StoredCredentials, clock: Clock) -> None:
    stored.used(ANN)
    first = of(stored).last_used_at
    assert first is not None
    clock.shift(590)
    stored.used(ANN)
    assert of(stored).last_used_at == first
    clock.shift(20)
    stored.used(ANN)
    assert of(stored).last_used_at != first


def test_the_overview_shows_users_and_no_tokens(stored: StoredCredentials) -> None:
    stored.save(BOB, "Bob", "", SECOND)
    stored.revoke(BOB, 1)
    ann, bob = stored.overview()
    assert (ann.osm_user_id, ann.osm_user_name, ann.revoked_at) == (ANN, "Ann", None)
    assert (bob.osm_user_name, bob.generation, bob.revoked_at is not None) == ("Bob", 1, True)
    assert "token" not in {name for name in ann.__struct_fields__ if name != "osm_token_expiry"}


def test_sealed_tokens_are_listed_by_user_so_many_at_a_time(stored: StoredCredentials) -> None:
    for user in (BOB, 9, 10):
        stored.save(user, "X", "", SECOND)
    assert [row.osm_user_id for row in stored.sealed(0, 2)] == [ANN, BOB]
    assert [row.osm_user_id for row in stored.sealed(BOB, 2)] == [9, 10]
    assert stored.sealed(10, 2) == []
    (row,) = stored.sealed(0, 1)
    assert (row.osm_access_token, row.osm_refresh_token, row.generation) == (b"a1", b"r1", 1)


def test_tokens_are_sealed_again_without_a_new_generation(stored: StoredCredentials) -> None:
    before = of(stored)
    assert stored.reseal(ANN, 1, b"a1'", b"r1'")
    assert held(stored) == (b"a1'", b"r1'", 1)
    assert of(stored).osm_token_expiry == before.osm_token_expiry


def test_tokens_that_were_replaced_meanwhile_are_not_sealed_over(stored: StoredCredentials) -> None:
    stored.end_refresh(ANN, 1, SECOND)
    assert not stored.reseal(ANN, 1, b"a1'", b"r1'")
    assert held(stored) == (b"a2", b"r2", 2)
    assert not stored.reseal(BOB, 1, b"", b"")
