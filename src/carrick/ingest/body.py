"""The body of a request without its compression. A bomb is noticed while it unfolds, and unfolds no further."""

from __future__ import annotations

import zlib

import zstandard

from carrick.ingest.problems import TooLarge, Unreadable, Unsupported

MAX_BODY_BYTES = 10 * 1024 * 1024
"""How large a body may be, as sent and unfolded."""
PIECE_BYTES = 64 * 1024
MAX_WINDOW_BYTES = 16 * 1024 * 1024
ENCODINGS = ("gzip", "zstd", "identity")
JSON_TYPE = "application/json"


def check_type(content_type: str | None) -> None:
    """Raise Unsupported unless the header says JSON, in UTF-8 if it says."""
    kind, *parameters = (content_type or "").lower().split(";")
    if kind.strip() != JSON_TYPE:
        raise Unsupported(f"Content-Type {content_type or ''!r:.100} is not supported; accepted: {JSON_TYPE}")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise Unsupported(f"charset {value.strip()!r:.100} is not supported; accepted: utf-8")


def check_encoding(content_encoding: str | None) -> str:
    """One of ENCODINGS. Raises Unsupported."""
    encoding = (content_encoding or "identity").strip().lower()
    if encoding not in ENCODINGS:
        raise Unsupported(
            f"Content-Encoding {content_encoding or ''!r:.100} is not supported; accepted: {', '.join(ENCODINGS)}"
        )
    return encoding


def unfolded(body: bytes, encoding: str, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """The body as JSON text. Raises TooLarge, or Unreadable when it is damaged or ends too early."""
    match encoding:
        case "gzip":
            text = _gunzipped(body, max_bytes)
        case "zstd":
            text = _unzstd(body, max_bytes)
        case _:
            text = body
    if len(text) > max_bytes:
        raise too_large(max_bytes)
    return text


def too_large(max_bytes: int = MAX_BODY_BYTES) -> TooLarge:
    return TooLarge(f"the body is larger than {max_bytes:,} bytes")


def _gunzipped(body: bytes, max_bytes: int) -> bytes:
    """Every member of the stream; each piece is asked for with a limit."""
    pieces: list[bytes] = []
    left = max_bytes + 1
    rest = body
    while rest and left > 0:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            piece = unpacker.decompress(rest, left)
        except zlib.error as error:
            raise Unreadable(f"the body is no gzip: {error}") from None
        pieces.append(piece)
        left -= len(piece)
        if not unpacker.eof and left > 0:
            raise Unreadable("the body is no gzip: it ends too early")
        rest = unpacker.unused_data
    if not pieces:
        raise Unreadable("the body is no gzip: it is empty")
    return b"".join(pieces)


def _unzstd(body: bytes, max_bytes: int) -> bytes:
    """The one frame of the body. Its size is known before memory is taken: from its header, or by a look through it."""
    try:
        size = zstandard.get_frame_parameters(body).content_size
        if size in (zstandard.CONTENTSIZE_UNKNOWN, 0):
            size = _measured(body, max_bytes)
        if size > max_bytes:
            raise too_large(max_bytes)
        return zstandard.ZstdDecompressor().decompress(body, max_output_size=max(size, 1), allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise Unreadable(f"the body is no zstd: {error}") from None


def _measured(body: bytes, max_bytes: int) -> int:
    """How many bytes are in there, at most one more than the limit."""
    size = 0
    with zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).stream_reader(body) as reader:
        while size <= max_bytes and (piece := reader.read(PIECE_BYTES)):
            size += len(piece)
    return size
