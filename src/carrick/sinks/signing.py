"""The signature of a request: what the sender proves and the receiver checks. Pure; the time is passed in."""

from __future__ import annotations

import hashlib
import hmac


def signature(secret: str, timestamp_ms: int, path: str, body: bytes, method: str = "POST") -> str:
    """The value of `x-edge-signature`: `path` without the query, `body` as it is sent, compressed or not."""
    signed = hmac.new(secret.encode(), f"{timestamp_ms}.{method}.{path}.".encode(), hashlib.sha256)
    signed.update(body)
    return f"sha256={signed.hexdigest()}"
