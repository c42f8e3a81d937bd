"""Frozen settings, read and validated once, from the environment and a `.env` file; the environment wins.

A wrong value raises SettingsError: one line with the variable, the value (secrets masked) and what is accepted.
A variable that is set to nothing counts as not set.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from carrick.variables import (
    Network,
    Secret,
    choice,
    existing_file,
    host,
    listed,
    mask_url,
    networks,
    number,
    read_variables,
    refused,
    region,
    web_address,
    whole,
    yes,
)

DEFAULT_DATABASE_URL = "sqlite:///carrick.db"
DATABASE_URLS_ACCEPTED = "sqlite:///FILE (four slashes for an absolute path), postgresql://… or postgres://…"
REDIS_URLS_ACCEPTED = (
    "redis://HOST[:PORT][/NUMBER], rediss://… (TLS) or unix:///PATH; options: db, username, password, ssl_…"
)
MAX_EDGE_ID = 255
"""What an ingest takes of a gateway's name."""
REDIS_OPTION = re.compile(r"db=[0-9]{1,5}|(username|password|ssl_[a-z_]+)=.*")


AuthMode = Literal["none", "api_key", "hmac"]
Service = Literal["forward", "ingest", "scoreboard", "drain"]

PORTS: dict[Service, tuple[int, int]] = {
    "forward": (8080, 9090),
    "ingest": (8081, 9091),
    "scoreboard": (8080, 9090),
    "drain": (0, 0),
}
"""PORT and METRICS_PORT where they are not set: a forwarder, an ingest and many drains may run on one machine."""


MESSAGE_MAX_BYTES = 2 * 1024 * 1024
"""The largest message to Kafka, with key and headers, before compression: what a channel takes by default, and more."""


class DatabaseUrl(msgspec.Struct, frozen=True):
    """A database that Carrick can use. `target` is a file for SQLite and the whole URL for PostgreSQL."""

    backend: Literal["sqlite", "postgres"]
    target: str


class CloudSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The cloud endpoint, as the forwarder reaches it and as the ingest guards it.

    `api_key` and `hmac_secret` may be lists with commas (`listed`): the first is sent, all of them are accepted.
    A client certificate goes with every way of authentication.
    """

    url: str = ""
    auth_mode: AuthMode = "none"
    api_key: str = ""
    hmac_secret: str = ""
    client_cert: str = ""
    client_key: str = ""
    ca_file: str = ""
    proxy: str = ""
    compression: Literal["none", "gzip", "zstd"] = "gzip"
    timeout_seconds: float = 30.0
    bytes_per_second: int = 0
    """0: as fast as it goes."""


class KafkaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The Kafka cluster of a drain, and how to get in. A password is there when the protocol is one of SASL's."""

    bootstrap_servers: str = ""
    client_id: str = "outbox-drain"
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = "SCRAM-SHA-512"
    sasl_username: str = ""
    sasl_password: str = ""
    ca_file: str = ""
    message_max_bytes: int = MESSAGE_MAX_BYTES


class IngestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The receiving side. `relay_channel`: where stored events are put for others to deliver; empty for nowhere."""

    relay_channel: str = "events"
    retention_days: float = 90.0
    max_in_flight: int = 256
    body_seconds: float = 60.0


CHANNEL_VARIABLES = {
    "batch_rows": "OUTBOX_BATCH_SIZE",
    "batch_bytes": "OUTBOX_BATCH_BYTES",
    "lease_seconds": "OUTBOX_LEASE_SECONDS",
    "max_attempts": "OUTBOX_MAX_ATTEMPTS",
    "backoff_cap_seconds": "OUTBOX_BACKOFF_CAP_SECONDS",
    "retention_days": "OUTBOX_RETENTION_DAYS",
    "dead_retention_days": "OUTBOX_DEAD_RETENTION_DAYS",
    "max_backlog_bytes": "OUTBOX_MAX_BACKLOG_BYTES",
    "on_full": "OUTBOX_ON_FULL",
}
"""The variable of each option of a channel that has one."""


class WebSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the connections of a port may be: so many, and silent for so long."""

    max_connections: int = 1000
    max_connections_per_address: int = 500
    head_seconds: float = 10.0
    idle_seconds: float = 120.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is set from outside. `outbox_…` are the defaults of channels that do not say otherwise."""

    database_url: str = DEFAULT_DATABASE_URL
    """May hold a password: show it through `mask_url`."""
    instance_id: str
    outbox_batch_size: int = 100
    outbox_batch_bytes: int = 1024 * 1024
    outbox_lease_seconds: int = 120
    outbox_max_attempts: int = 10
    outbox_backoff_cap_seconds: float = 300.0
    outbox_retention_days: float = 7.0
    outbox_dead_retention_days: float = 30.0
    outbox_max_backlog_bytes: int | None = None
    outbox_on_full: Literal["reject", "evict"] = "reject"
    outbox_set: frozenset[str] = frozenset()
    """Those of them that are set, by the channel's own names of the options."""
    host: str = "127.0.0.1"
    port: int = 8080
    metrics_port: int = 9090
    cloud: CloudSettings = CloudSettings()
    ingest: IngestSettings = IngestSettings()
    web: WebSettings = WebSettings()
    edge_id: str = ""
    sync_forwarder_mode: Literal["send", "noop"] = "send"
    sync_interval_seconds: float = 60.0
    sync_batches_in_flight: int = 4
    sync_grace_seconds: float = 20.0
    internal_admin_enabled: bool = False
    admin_token: str = ""
    trusted_proxies: tuple[Network, ...] = ()
    """Whose word counts about where a request came from."""
    kafka: KafkaSettings = KafkaSettings()
    contacts_channel: str = "events"
    contacts_default_region: str = ""
    redis_url: str = ""
    """May hold a password: show it through `mask_url`."""
    redis_key_prefix: str = ""

    def channel_defaults(self) -> dict[str, int | float | str | None]:
        """The options of a channel that these settings stand for, by the channel's own names."""
        return {
            "batch_rows": self.outbox_batch_size,
            "batch_bytes": self.outbox_batch_bytes,
            "lease_seconds": self.outbox_lease_seconds,
            "max_attempts": self.outbox_max_attempts,
            "backoff_cap_seconds": self.outbox_backoff_cap_seconds,
            "retention_days": self.outbox_retention_days,
            "dead_retention_days": self.outbox_dead_retention_days,
            "max_backlog_bytes": self.outbox_max_backlog_bytes,
            "on_full": self.outbox_on_full,
        }

    def channel_settings(self) -> dict[str, int | float | str | None]:
        """Those of the defaults that are set: they hold for channels that others have declared, too."""
        return {option: value for option, value in self.channel_defaults().items() if option in self.outbox_set}


def read_settings(
    environ: Mapping[str, str] | None = None, env_file: Path | None = None, *, service: Service = "forward"
) -> Settings:
    """Read the environment and `.env` in the working directory, or what is given instead. Raises SettingsError.

    Services differ in nothing but the ports they take when none is set.
    """
    values = read_variables(environ, env_file)
    database_url = values.get("DATABASE_URL") or DEFAULT_DATABASE_URL
    parse_database_url(database_url)
    instance_id = _instance_id(values)
    port, metrics_port = PORTS[service]
    return Settings(
        database_url=database_url,
        instance_id=instance_id,
        outbox_batch_size=whole(values, "OUTBOX_BATCH_SIZE", 100, 1, 10_000),
        outbox_batch_bytes=whole(values, "OUTBOX_BATCH_BYTES", 1024 * 1024, 1, 1024**3),
        outbox_lease_seconds=whole(values, "OUTBOX_LEASE_SECONDS", 120, 1, 86_400),
        outbox_max_attempts=whole(values, "OUTBOX_MAX_ATTEMPTS", 10, 1, 1_000),
        outbox_backoff_cap_seconds=number(values, "OUTBOX_BACKOFF_CAP_SECONDS", 300.0, 1, 31 * 86_400),
        outbox_retention_days=number(values, "OUTBOX_RETENTION_DAYS", 7.0, 0, 36_500),
        outbox_dead_retention_days=number(values, "OUTBOX_DEAD_RETENTION_DAYS", 30.0, 0, 36_500),
        outbox_max_backlog_bytes=whole(values, "OUTBOX_MAX_BACKLOG_BYTES", 0, 0, 2**62) or None,
        outbox_on_full=choice(values, "OUTBOX_ON_FULL", ("reject", "evict")),
        outbox_set=frozenset(option for option, variable in CHANNEL_VARIABLES.items() if values.get(variable)),
        host=host(values, "HOST") or "127.0.0.1",
        port=whole(values, "PORT", port, 0, 65_535),
        metrics_port=whole(values, "METRICS_PORT", metrics_port, 0, 65_535),
        cloud=_cloud(values),
        ingest=_ingest(values),
        web=_web(values),
        edge_id=_edge_id(values) or instance_id,
        sync_forwarder_mode=choice(values, "SYNC_FORWARDER_MODE", ("send", "noop")),
        sync_interval_seconds=whole(values, "SYNC_INTERVAL_MS", 60_000, 10, 86_400_000) / 1000,
        sync_batches_in_flight=whole(values, "SYNC_BATCHES_IN_FLIGHT", 4, 1, 64),
        sync_grace_seconds=number(values, "SYNC_GRACE_SECONDS", 20.0, 0, 3_600),
        internal_admin_enabled=yes(values, "INTERNAL_ADMIN_ENABLED"),
        admin_token=_admin_token(values),
        trusted_proxies=networks(values, "TRUSTED_PROXIES"),
        kafka=_kafka(values),
        contacts_channel=values.get("CONTACTS_CHANNEL") or "events",
        contacts_default_region=region(values, "CONTACTS_DEFAULT_REGION"),
        redis_url=Secret(_redis_url(values)),
        redis_key_prefix=_key_prefix(values),
    )


def _cloud(values: Mapping[str, str]) -> CloudSettings:
    cloud = CloudSettings(
        url=web_address(values, "CLOUD_INGESTION_URL"),
        auth_mode=choice(values, "CLOUD_AUTH_MODE", ("none", "api_key", "hmac")),
        api_key=Secret(values.get("CLOUD_API_KEY", "")),
        hmac_secret=Secret(values.get("CLOUD_HMAC_SECRET", "")),
        client_cert=existing_file(values, "CLOUD_CLIENT_CERT"),
        client_key=existing_file(values, "CLOUD_CLIENT_KEY"),
        ca_file=existing_file(values, "CLOUD_CA_FILE"),
        proxy=web_address(values, "CLOUD_PROXY"),
        compression=choice(values, "CLOUD_COMPRESSION", ("gzip", "zstd", "none")),
        timeout_seconds=number(values, "CLOUD_TIMEOUT_SECONDS", 30.0, 0.1, 3_600),
        bytes_per_second=whole(values, "CLOUD_BYTES_PER_SECOND", 0, 0, 10**12),
    )
    if cloud.auth_mode == "api_key" and not listed(cloud.api_key):
        raise refused("CLOUD_API_KEY", "", "the key, because CLOUD_AUTH_MODE is api_key")
    if cloud.auth_mode == "hmac" and not listed(cloud.hmac_secret):
        raise refused("CLOUD_HMAC_SECRET", "", "the secret, because CLOUD_AUTH_MODE is hmac")
    if cloud.client_key and not cloud.client_cert:
        raise refused("CLOUD_CLIENT_CERT", "", "the certificate that belongs to CLOUD_CLIENT_KEY")
    return cloud


def _kafka(values: Mapping[str, str]) -> KafkaSettings:
    kafka = KafkaSettings(
        bootstrap_servers=_bootstrap_servers(values),
        client_id=values.get("KAFKA_CLIENT_ID") or "outbox-drain",
        security_protocol=choice(values, "KAFKA_SECURITY_PROTOCOL", ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        sasl_mechanism=choice(values, "KAFKA_SASL_MECHANISM", ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")),
        sasl_username=values.get("KAFKA_SASL_USERNAME", ""),
        sasl_password=Secret(values.get("KAFKA_SASL_PASSWORD", "")),
        ca_file=existing_file(values, "KAFKA_CA_FILE"),
        message_max_bytes=whole(values, "KAFKA_MESSAGE_MAX_BYTES", MESSAGE_MAX_BYTES, 1_000, 1_000_000_000),
    )
    protocol = kafka.security_protocol
    for variable in ("KAFKA_SASL_MECHANISM", "KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"):
        if values.get(variable) and not protocol.startswith("SASL_"):
            raise refused("KAFKA_SECURITY_PROTOCOL", protocol, f"SASL_SSL or SASL_PLAINTEXT, because {variable} is set")
    for variable in ("KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"):
        if protocol.startswith("SASL_") and not values.get(variable):
            raise refused(variable, "", f"what the broker knows us by, because KAFKA_SECURITY_PROTOCOL is {protocol}")
    if kafka.ca_file and not protocol.endswith("SSL"):
        raise refused("KAFKA_SECURITY_PROTOCOL", protocol, "SSL or SASL_SSL, because KAFKA_CA_FILE is set")
    return kafka


def _bootstrap_servers(values: Mapping[str, str]) -> str:
    """KAFKA_BOOTSTRAP_SERVERS, or by its other name KAFKA_BROKER."""
    servers, broker = (values.get(name, "").strip() for name in ("KAFKA_BOOTSTRAP_SERVERS", "KAFKA_BROKER"))
    if servers and broker and servers != broker:
        accepted = f"one of the two, or both the same: KAFKA_BOOTSTRAP_SERVERS={servers!r} is set as well"
        raise refused("KAFKA_BROKER", broker, accepted)
    return servers or broker


def _ingest(values: Mapping[str, str]) -> IngestSettings:
    return IngestSettings(
        relay_channel=values.get("INGEST_RELAY_CHANNEL", "events").strip(),  # set to nothing: nothing is relayed
        retention_days=number(values, "INGEST_RETENTION_DAYS", 90.0, 1, 36_500),
        max_in_flight=whole(values, "INGEST_MAX_IN_FLIGHT", 256, 1, 100_000),
        body_seconds=number(values, "INGEST_BODY_SECONDS", 60.0, 0.1, 3_600),
    )


def _web(values: Mapping[str, str]) -> WebSettings:
    return WebSettings(
        max_connections=whole(values, "WEB_MAX_CONNECTIONS", 1000, 10, 1_000_000),
        max_connections_per_address=whole(values, "WEB_MAX_CONNECTIONS_PER_ADDRESS", 500, 10, 1_000_000),
        head_seconds=number(values, "WEB_HEAD_SECONDS", 10.0, 1, 3_600),
        idle_seconds=number(values, "WEB_IDLE_SECONDS", 120.0, 1, 3_600),
    )


def parse_database_url(url: str) -> DatabaseUrl:
    """Tell which database a setting names. Raises SettingsError for anything but a SQLite file or PostgreSQL."""
    database = database_of(url)
    if database is None:
        raise refused("DATABASE_URL", mask_url(url), DATABASE_URLS_ACCEPTED)
    return database


def database_of(url: str) -> DatabaseUrl | None:
    """The database that a URL names, None when it names none that Carrick can use."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        return DatabaseUrl("postgres", url)
    if separator and scheme == "sqlite" and rest.startswith("/"):
        path = unquote(rest[1:])
        if "?" not in rest and "\x00" not in path and path.strip("/") not in ("", ":memory:"):
            return DatabaseUrl("sqlite", path)
    return None


def _instance_id(values: Mapping[str, str]) -> str:
    """INSTANCE_ID, else HOSTNAME, else a generated one; it names the owner of claims."""
    for variable in ("INSTANCE_ID", "HOSTNAME"):
        value = values.get(variable, "")
        if value:
            if len(value) > 200 or not value.isprintable():
                raise refused(variable, value, "1 to 200 printable characters")
            return value
    return f"carrick-{uuid.uuid4().hex[:12]}"


def _edge_id(values: Mapping[str, str]) -> str:
    text = values.get("EDGE_ID", "")
    if len(text) > MAX_EDGE_ID or not text.isprintable():
        raise refused("EDGE_ID", text, f"1 to {MAX_EDGE_ID} printable characters in UTF-8")
    return text


def _admin_token(values: Mapping[str, str]) -> Secret:
    text = values.get("ADMIN_TOKEN", "")
    if not text.isprintable():
        raise refused("ADMIN_TOKEN", "***", "printable characters in UTF-8")
    return Secret(text)


def _redis_url(values: Mapping[str, str]) -> str:
    """The address of a Redis or Valkey, or nothing."""
    text = values.get("REDIS_URL", "").strip()
    if text and not _is_redis_url(text):
        raise refused("REDIS_URL", mask_url(text), REDIS_URLS_ACCEPTED)
    return text


def _is_redis_url(text: str) -> bool:
    if not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or an address that is none
        return False
    if not all(REDIS_OPTION.fullmatch(f"{name}={value}") for name, value in parse_qsl(parts.query, True)):
        return False
    if parts.scheme == "unix":
        return len(parts.path) > 1
    return parts.scheme in ("redis", "rediss") and named and re.fullmatch(r"(/[0-9]{0,5})?", parts.path) is not None


def _key_prefix(values: Mapping[str, str]) -> str:
    text = values.get("REDIS_KEY_PREFIX", "")
    if len(text) > 100 or not text.isprintable():
        raise refused("REDIS_KEY_PREFIX", text, "at most 100 printable characters")
    return text
