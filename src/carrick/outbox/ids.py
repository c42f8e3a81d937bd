"""Ids of entries: UUIDs of version 7, so that they sort by the time they were made."""

from __future__ import annotations

import os
import time
from datetime import datetime


def new_ids(now: datetime, count: int) -> list[str]:
    """UUIDv7s of that moment of the database's clock, as hexadecimal text."""
    stamp = f"{int(now.timestamp() * 1000):012x}7"
    noise = os.urandom(10 * count).hex()
    variants = "89ab"
    return [
        stamp + noise[at : at + 3] + variants[int(noise[at + 3], 16) & 3] + noise[at + 4 : at + 19]
        for at in range(0, 20 * count, 20)
    ]


def new_id() -> str:
    """One UUIDv7 of now, as text with hyphens."""
    noise = int.from_bytes(os.urandom(10), "big")
    low = 0x8000_0000_0000_0000 | (noise & 0x3FFF_FFFF_FFFF_FFFF)
    text = f"{time.time_ns() // 1_000_000:012x}7{noise >> 68:03x}{low:016x}"
    return hyphenated(text)


def hyphenated(text: str) -> str:
    """An id with its hyphens."""
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
