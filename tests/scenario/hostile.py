"""Hostile requests for the ingest: batches that are cut, bent and blown up, by a seed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import zstandard

from tests.batches import batch, event


class Hostile(NamedTuple):
    """A request body with its headers."""

    content: bytes
    headers: dict[str, str]


JSON = {"Content-Type": "application/json"}
ODD_TEXTS = [
    "",
    "\0",
    "\ud800",
    "x" * 300,
    "é",
    "\u202e",
    "'; drop table carrick_inbox; --",
    "%00",
    "\\",
    '"',
    "\x7f",
    "\uffff",
]
ODD_VALUES: list[Any] = [None, True, 0, -1, 2**63, 10**400, 1e308, -0.0, [], {}, [[]], {"": {}}, *ODD_TEXTS]
RAW_NUMBERS = [b"1e400", b"-1e-400", b"9" * 5000, b"0.1e+99999", b"01", b"1.", b"NaN", b"Infinity", b"-"]
ODD_TYPES = ["", "text/html", "application/json; charset=utf-16", "application/json;", "multipart/form-data", "*/*"]
ODD_ENCODINGS = ["br", "deflate", "gzip, gzip", "zstd,gzip", "identity, gzip", "x", ""]
FIELDS = ["event_id", "tenant_id", "event_type", "occurred_at", "trace_id", "schema_version", "payload", "device_id"]
BOMBS = [
    Hostile(gzip.compress(b" " * 50_000_000, 1), {**JSON, "Content-Encoding": "gzip"}),
    Hostile(zstandard.compress(b" " * 50_000_000), {**JSON, "Content-Encoding": "zstd"}),
    Hostile(
        zstandard.ZstdCompressor(write_content_size=False).compress(b"[" * 50_000_000),
        {**JSON, "Content-Encoding": "zstd"},
    ),
]


def plain(chance: random.Random) -> dict[str, Any]:
    return batch(*[event(f"e-{chance.randrange(10**9)}") for _ in range(chance.randrange(5))])


def bent(chance: random.Random) -> Any:
    """A batch with some fields of another kind, missing or odd."""
    made = plain(chance)
    for one in [made, *made["events"]]:
        for name in chance.sample(FIELDS, chance.randrange(4)):
            if chance.random() < 0.2:
                one.pop(name, None)
            else:
                one[name] = chance.choice(ODD_VALUES)
    if chance.random() < 0.2:
        made["events"].insert(0, chance.choice(ODD_VALUES))
    if chance.random() < 0.05:
        made["events"] = chance.choice(ODD_VALUES)
    return made


def text_of(value: Any) -> bytes:
    return json.dumps(value).encode()


def deep(chance: random.Random) -> bytes:
    """Nested as deep as it likes, in the payload, in another field or instead of the batch."""
    depth = chance.choice([90, 101, 500, 990, 5000, 100_000])
    nested = (b"[" * depth + b"]" * depth) if chance.random() < 0.5 else (b'{"a":' * depth + b"1" + b"}" * depth)
    name = chance.choice(["payload", "device_id", "event_id", "tenant_id"])
    whole = text_of(batch(event(**{name: "HERE"}) if name != "event_id" else event("HERE")))
    return chance.choice([nested, whole.replace(b'"HERE"', nested)])


def numbers(chance: random.Random) -> bytes:
    name = chance.choice(["payload", "device_id", "occurred_at"])
    return text_of(batch(event(**{name: "HERE"}))).replace(b'"HERE"', chance.choice(RAW_NUMBERS))


def twice(chance: random.Random) -> bytes:
    """Equal keys and equal events."""
    one = text_of(event("same"))[1:-1]
    return b'{"tenant_id":"farm-1","tenant_id":"farm-1","events":[{%b,%b},{%b}]}' % (one, one, one)


def surrogates(chance: random.Random) -> bytes:
    half = chance.choice([rb"\ud800", rb"\udfff", rb"\ud83d\ude00", rb"\ud800\u0041", rb"\\ud800", rb"\u0000"])
    name = chance.choice(["payload", "device_id", "event_type", "HERE"])
    return text_of(batch(event("a"), event("b", **{name: "HERE"}), tenant_id="farm-1")).replace(b"HERE", half)


def many(chance: random.Random) -> bytes:
    return b'{"tenant_id":"t","events":[' + b",".join([b'{"event_id":"a"}'] * chance.choice([1001, 20_000])) + b"]}"


def mutated(chance: random.Random) -> bytes:
    """A good batch with some bytes changed, cut out or doubled."""
    content = bytearray(text_of(plain(chance)))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(content) or 1)
        match chance.randrange(4):
            case 0:
                content[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del content[at : at + chance.randrange(1, 20)]
            case 2:
                content[at:at] = content[at : at + chance.randrange(1, 20)]
            case _:
                del content[at:]
    return bytes(content)


MAKERS: list[Callable[[random.Random], bytes]] = [
    lambda chance: text_of(bent(chance)),
    lambda chance: text_of(bent(chance)),
    mutated,
    mutated,
    deep,
    numbers,
    twice,
    surrogates,
    lambda chance: chance.randbytes(chance.randrange(200)),
]


def hostile(chance: random.Random) -> Hostile:
    """Some request that nobody should send."""
    if chance.random() < 0.001:
        return chance.choice(BOMBS)
    content = many(chance) if chance.random() < 0.002 else chance.choice(MAKERS)(chance)
    headers = dict(JSON)
    if chance.random() < 0.05:
        headers["Content-Type"] = chance.choice(ODD_TYPES)
    if chance.random() < 0.3:
        kind = chance.choice(["gzip", "zstd"])
        headers["Content-Encoding"] = kind
        content = gzip.compress(content, 1) if kind == "gzip" else zstandard.compress(content)
        if chance.random() < 0.3:
            content = content[: chance.randrange(len(content))] + chance.randbytes(chance.randrange(5))
    elif chance.random() < 0.1:
        headers["Content-Encoding"] = chance.choice(ODD_ENCODINGS)
    if chance.random() < 0.1:
        headers["x-tenant-id"] = chance.choice(["farm-1", "farm-2", "", "é".encode().decode("latin-1"), "x" * 4000])
    if chance.random() < 0.1:
        headers["x-edge-timestamp"] = chance.choice(["", "9" * 400, "-1", "now"])
        headers["x-edge-signature"] = chance.choice(["", "sha256=", "x" * 5000])
    return Hostile(content, headers)
