"""Bodies without their compression: whole, damaged, too large and unknown."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
import zstandard

from carrick.ingest.body import MAX_BODY_BYTES, unfolded
from carrick.ingest.problems import TooLarge, Unreadable

TEXT = b'{"a": 1}' * 1000


def unsized(text: bytes) -> bytes:
    """A zstd frame that does not say how much is in it."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(text)


WHOLE = {
    "identity": TEXT,
    "gzip": gzip.compress(TEXT),
    "gzip, two members": gzip.compress(TEXT[:5]) + gzip.compress(TEXT[5:]),
    "zstd": zstandard.compress(TEXT),
    "zstd, size not told": unsized(TEXT),
}
"""The encoding is the first word of a name."""

DAMAGED = {
    "gzip, empty": b"",
    "gzip, plain text": TEXT,
    "gzip, zlib instead": zlib.compress(TEXT),
    "gzip, cut": gzip.compress(TEXT)[:-1],
    "gzip, wrong sum": gzip.compress(TEXT)[:-9] + b"x" * 9,
    "gzip, more behind": gzip.compress(TEXT) + b"more",
    "zstd, empty": b"",
    "zstd, plain text": TEXT,
    "zstd, cut": zstandard.compress(TEXT)[:-1],
    "zstd, more behind": zstandard.compress(TEXT) + b"more",
    "zstd, two frames": zstandard.compress(TEXT) * 2,
    "zstd, a frame to skip": b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip" + zstandard.compress(TEXT),
    "zstd, size not told, cut": unsized(TEXT)[:-1],
    "zstd, garbage": zstandard.compress(TEXT)[:6] + b"x" * 20,
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_body_is_unfolded(name: str) -> None:
    assert unfolded(WHOLE[name], name.partition(",")[0]) == TEXT


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_body_is_refused(name: str) -> None:
    encoding = name.partition(",")[0]
    with pytest.raises(Unreadable, match=f"no {encoding}"):
        unfolded(DAMAGED[name], encoding)


def test_the_largest_body_is_accepted() -> None:
    text = b" " * MAX_BODY_BYTES
    for encoding, body in (("gzip", gzip.compress(text)), ("zstd", zstandard.compress(text)), ("zstd", unsized(text))):
        assert len(unfolded(body, encoding)) == MAX_BODY_BYTES


BOMBS = {
    "gzip": gzip.compress(b"\0" * (64 * 1024 * 1024), 1),
    "gzip, many members": gzip.compress(b"\0" * (1024 * 1024)) * 64,
    "zstd": zstandard.compress(b"\0" * (64 * 1024 * 1024)),
    "zstd, size not told": unsized(b"\0" * (64 * 1024 * 1024)),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_it_unfolds(bomb: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="10,485,760"):
            unfolded(BOMBS[bomb], bomb.partition(",")[0])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * MAX_BODY_BYTES


def test_a_frame_that_lies_about_its_size_is_refused() -> None:
    honest = bytearray(zstandard.compress(b"\0" * 100_000_000))
    size_at = honest.index((100_000_000).to_bytes(4, "little"))
    honest[size_at : size_at + 4] = (1000).to_bytes(4, "little")
    with pytest.raises(Unreadable, match="no zstd"):
        unfolded(bytes(honest), "zstd")
