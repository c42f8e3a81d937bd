"""The body of a request without its compression. A bomb is noticed while it unfolds, and unfolds no further."""

from __future__ import annotations

import zlib

import zstandard

PIECE_BYTES = 64 * 1024
MOST_MEMBERS = 64
"""Nobody needs more than one: a sender that flushes often makes blocks, not members."""
MAX_WINDOW_BYTES = 16 * 1024 * 1024
ENCODINGS = ("gzip", "zstd", "identity")


class UnknownEncoding(Exception):
    """Nobody here can unfold it."""


class Damaged(Exception):
    """It is not what its encoding says, or ends too early."""


class TooMuch(Exception):
    """It is larger than may be, as sent or unfolded."""


def encoding_of(content_encoding: str | None) -> str:
    """One of ENCODINGS. Raises UnknownEncoding."""
    encoding = (content_encoding or "").strip().lower() or "identity"
    if encoding not in ENCODINGS:
        given = f"Content-Encoding {content_encoding or ''!r:.100}"
        raise UnknownEncoding(f"{given} is not supported; accepted: {', '.join(ENCODINGS)}")
    return encoding


def unfolded(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """The body as it was before it was compressed. Raises Damaged or TooMuch."""
    match encoding:
        case "gzip":
            text = _gunzipped(body, max_bytes)
        case "zstd":
            text = _unzstd(body, max_bytes)
        case _:
            text = body
    if len(text) > max_bytes:
        raise _too_large(max_bytes)
    return text


def _gunzipped(body: bytes, max_bytes: int) -> bytes:
    """Every member of the stream. Fed in pieces: what stands behind a member is copied, once for each of them."""
    unpacked: list[bytes] = []
    left = max_bytes + 1
    place = members = 0
    unpacker = None
    while place < len(body) and left > 0:
        if unpacker is None:
            members += 1
            if members > MOST_MEMBERS:
                raise _damaged("gzip", f"it has more than {MOST_MEMBERS} members")
            unpacker = zlib.decompressobj(wbits=31)
        piece = body[place : place + PIECE_BYTES]
        try:
            text = unpacker.decompress(piece, left)
        except zlib.error as error:
            raise _damaged("gzip", error) from None
        unpacked.append(text)
        left -= len(text)
        place += len(piece) - len(unpacker.unused_data)
        if unpacker.eof:
            unpacker = None
    if (unpacker is not None and left > 0) or not members:
        raise _damaged("gzip", "it ends too early" if members else "it is empty")
    return b"".join(unpacked)


def _unzstd(body: bytes, max_bytes: int) -> bytes:
    """The one frame of the body. Its size is known before memory is taken: from its header, or by a look through it."""
    try:
        size = zstandard.get_frame_parameters(body).content_size
        if size in (zstandard.CONTENTSIZE_UNKNOWN, 0):
            size = _measured(body, max_bytes)
        if size > max_bytes:
            raise _too_large(max_bytes)
        return zstandard.ZstdDecompressor().decompress(body, max_output_size=max(size, 1), allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise _damaged("zstd", error) from None


def _measured(body: bytes, max_bytes: int) -> int:
    """How many bytes are in there, at most a piece more than the limit."""
    size = 0
    with zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).stream_reader(body) as reader:
        while size <= max_bytes and (piece := reader.read(PIECE_BYTES)):
            size += len(piece)
    return size


def _damaged(encoding: str, said: object) -> Damaged:
    return Damaged(f"the body is no {encoding}: {said}")


def _too_large(max_bytes: int) -> TooMuch:
    return TooMuch(f"the body is larger than {max_bytes:,} bytes")
