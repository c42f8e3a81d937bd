"""The signature of a request."""

from __future__ import annotations

from pathlib import Path

from carrick.sinks.signing import signature

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "http-sink.md"


def test_the_signature_is_that_of_the_worked_example() -> None:
    """The value was computed with `openssl dgst -sha256 -hmac`, as the reference shows."""
    body = b'{"tenant_id":"acme"}'
    expected = "2e32e31b3f67179c8f0dbb5d1bc995abb4f0aa9d53fc1f548455c751dac0568f"
    assert signature("s3cret", 1767323045678, "/api/v1/edge/batch", body) == f"sha256={expected}"
    assert f"# {expected}" in REFERENCE.read_text(encoding="utf-8")
