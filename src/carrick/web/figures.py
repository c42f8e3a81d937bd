"""What a process counts about the ports it serves on: shown at /metrics of every service, beside its own figures."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

REGISTRY = CollectorRegistry()
CONNECTIONS = Gauge("carrick_web_connections", "Connections that are open.", registry=REGISTRY)
CONNECTIONS_CLOSED = Counter(
    "carrick_web_connections_closed",
    "Connections that were closed here before their other end did it, and newcomers that were refused.",
    ["reason"],
    registry=REGISTRY,
)
REFUSED = Counter("carrick_web_refused", "Requests that were refused, by the error told.", ["error"], registry=REGISTRY)
WRONG_TOKENS = Counter("carrick_web_wrong_tokens", "Wrong admin tokens.", registry=REGISTRY)


def text() -> bytes:
    """In Prometheus's text format."""
    return generate_latest(REGISTRY)
