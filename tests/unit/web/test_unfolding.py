"""Compressed bodies that are made to cost: they are refused, and cost no more than others of their size."""

from __future__ import annotations

import gzip
import zlib

import pytest

from carrick.web.unfolding import MOST_MEMBERS, PIECE_BYTES, Damaged, TooMuch, unfolded

EMPTY = gzip.compress(b"")


def test_a_few_members_are_one_text() -> None:
    assert unfolded(gzip.compress(b"a") * MOST_MEMBERS, "gzip", 1000) == b"a" * MOST_MEMBERS


def test_more_members_than_anybody_needs_are_refused() -> None:
    with pytest.raises(Damaged, match="more than 64 members"):
        unfolded(EMPTY * 5_000, "gzip", 1000)


def test_what_stands_behind_a_member_is_never_copied_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []

    class Counted:
        """A decompressor that notes how much it is given."""

        def __init__(self, wbits: int) -> None:
            self._one = real(wbits=wbits)

        def decompress(self, piece: bytes, most: int) -> bytes:
            fed.append(len(piece))
            return self._one.decompress(piece, most)

        def __getattr__(self, name: str) -> object:
            return getattr(self._one, name)

    real = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Counted)
    text = bytes(range(256)) * 8_000
    body = EMPTY * (MOST_MEMBERS - 1) + gzip.compress(text, 0)
    assert unfolded(body, "gzip", len(text)) == text
    assert sum(fed) < len(body) + MOST_MEMBERS * PIECE_BYTES


@pytest.mark.parametrize("size", [PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_members_may_end_anywhere_in_a_piece(size: int) -> None:
    text = b"x" * size
    first, second = gzip.compress(text, 0), gzip.compress(b"end")
    assert unfolded(first + second, "gzip", 10**6) == text + b"end"
    with pytest.raises(Damaged, match="ends too early"):
        unfolded(first[:-1], "gzip", 10**6)
    with pytest.raises(TooMuch):
        unfolded(first + second, "gzip", size)
