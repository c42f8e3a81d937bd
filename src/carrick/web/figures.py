"""What a process counts about the sockets it serves on: shown at /metrics of every service, beside its own figures."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, generate_latest

REGISTRY = CollectorRegistry()
WRONG_TOKENS = Counter("carrick_web_wrong_tokens", "Wrong admin tokens.", registry=REGISTRY)


def text() -> bytes:
    """In Prometheus's text format."""
    return generate_latest(REGISTRY)
