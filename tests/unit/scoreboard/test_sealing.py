"""What is sealed is opened with its key, in its place, as it was; by nobody else, nowhere else, and not altered."""

from __future__ import annotations

import pytest

from carrick_scoreboard.sealing import KEY_BYTES, KeyRing, Unreadable, digest, key_text, keys_in, new_key, short

OLD, NEW = b"o" * KEY_BYTES, b"n" * KEY_BYTES
PLACE = "credential:7:access"


def test_what_was_sealed_is_opened_in_its_place() -> None:
    ring = KeyRing({"old": OLD})
    for text in ("", "token", "ü" * 5_000):
        assert ring.unseal(ring.seal(text, PLACE), PLACE) == text


def test_nothing_of_the_text_is_seen_and_the_same_text_looks_different_each_time() -> None:
    ring = KeyRing({"old": OLD})
    one, two = ring.seal("osm-a-secret", PLACE), ring.seal("osm-a-secret", PLACE)
    assert one != two
    assert b"secret" not in one


def test_what_was_moved_to_another_place_is_not_opened() -> None:
    ring = KeyRing({"old": OLD})
    with pytest.raises(Unreadable, match="credential:8:access"):
        ring.unseal(ring.seal("token", PLACE), "credential:8:access")


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(Unreadable, match="key 'old', which is not in CARRICK_SECRET_KEYS"):
        KeyRing({"new": NEW}).unseal(KeyRing({"old": OLD}).seal("token", PLACE), PLACE)


def test_another_key_of_the_same_name_opens_nothing() -> None:
    with pytest.raises(Unreadable):
        KeyRing({"old": NEW}).unseal(KeyRing({"old": OLD}).seal("token", PLACE), PLACE)


def test_no_altered_or_shortened_byte_goes_unnoticed() -> None:
    ring = KeyRing({"old": OLD})
    sealed = ring.seal("token", PLACE)
    for place in range(len(sealed)):
        altered = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises(Unreadable):
            ring.unseal(altered, PLACE)
        with pytest.raises(Unreadable):
            ring.unseal(sealed[:place], PLACE)


def test_the_first_key_seals_and_all_of_them_open() -> None:
    before, after = KeyRing({"old": OLD}), KeyRing({"new": NEW, "old": OLD})
    sealed = before.seal("token", PLACE)
    assert after.unseal(sealed, PLACE) == "token"
    assert not after.is_newest(sealed)
    again = after.seal("token", PLACE)
    assert after.is_newest(again)
    assert KeyRing({"new": NEW}).unseal(again, PLACE) == "token"


@pytest.mark.parametrize("junk", [b"", b"\x01", b"\x02old", b"plain text of some length", b"\x01\xff" + b"x" * 40])
def test_what_was_never_sealed_is_said_to_be_so(junk: bytes) -> None:
    with pytest.raises(Unreadable):
        KeyRing({"old": OLD}).unseal(junk, PLACE)
    with pytest.raises(Unreadable):
        KeyRing({"old": OLD}).is_newest(junk)


def test_a_mark_is_known_again_by_any_key_in_its_place_and_nowhere_else() -> None:
    mark = KeyRing({"old": OLD}).mark("form", "csrf")
    ring = KeyRing({"new": NEW, "old": OLD})
    assert ring.is_marked(mark, "form", "csrf")
    assert ring.is_marked(ring.mark("form", "csrf"), "form", "csrf")
    assert not ring.is_marked(mark, "another form", "csrf")
    assert not ring.is_marked(mark, "form", "cookie")
    assert not KeyRing({"new": NEW}).is_marked(mark, "form", "csrf")
    assert not ring.is_marked("\udcff", "form", "csrf")


def test_a_ring_shows_names_only_and_cannot_be_empty() -> None:
    assert repr(KeyRing({"new": NEW, "old": OLD})) == "KeyRing(new, old)"
    with pytest.raises(ValueError, match="without a key"):
        KeyRing({})


def test_a_new_key_is_written_down_and_read_again() -> None:
    name, key = new_key()
    assert keys_in([key_text(name, key), key_text("old", OLD)]) == {name: key, "old": OLD}
    assert new_key() != (name, key)


@pytest.mark.parametrize(
    "items",
    [
        ["secret"],
        [":c2VjcmV0"],
        ["k:c2VjcmV0"],
        ["k:" + "!" * 44],
        ["a b:" + key_text("", OLD)[1:]],
        ["x" * 33 + key_text("", OLD)],
        [key_text("k", OLD), key_text("k", NEW)],
    ],
)
def test_what_is_no_list_of_keys_is_refused_without_being_shown(items: list[str]) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  the decoder has words of its own
        keys_in(items)
    assert "secret" not in str(refused.value)
    assert "c2VjcmV0" not in str(refused.value)


def test_a_digest_is_sha_256_and_its_first_eight_digits_name_a_code_in_a_log() -> None:
    assert digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert short("abc") == "ba7816bf"
