"""The one place where concrete parts are put together: which database a URL means, and what to open for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from carrick.errors import InvalidInput, SettingsError, UnknownChannel
from carrick.outbox import opening
from carrick.outbox.channel import OPTIONS, Channel, with_defaults
from carrick.outbox.migration import Part
from carrick.outbox.outbox import Outbox
from carrick.outbox.store import Store
from carrick.settings import CHANNEL_VARIABLES, CloudSettings, DatabaseUrl, KafkaSettings, Settings, read_settings
from carrick.variables import mask_url, refused

if TYPE_CHECKING:  # what a command does not need is not loaded
    from carrick.contacts.contacts import Contacts
    from carrick.forward.demo import EdgeDemo
    from carrick.forward.service import Forwarder
    from carrick.ingest.batch import Arrival, Arrivals
    from carrick.ingest.service import Ingest
    from carrick.ingest.store import Arrived, Inbox, Watcher
    from carrick.ops.metrics import Metrics
    from carrick.relay.crew import Leg
    from carrick.relay.relay import RelaySettings
    from carrick.relay.threads import Threads
    from carrick.sinks.kafka import KafkaSink
    from carrick.sinks.sink import Sink
    from carrick.state.database import Tables
    from carrick.state.redis import RedisServer
    from carrick.state.shared import SharedState

log = logging.getLogger("carrick.outbox")


def open_store(database_url: str) -> Store:
    """The store of that database; close it when done. Raises InvalidInput, MissingExtra or a StoreError."""
    return opening.open_store(database_url)


def open_outbox(database_url: str, settings: Settings | None = None) -> Outbox:
    """The outbox of that database; with settings, their defaults hold for channels that do not say otherwise."""
    return Outbox.connect(database_url, channel_defaults=settings.channel_defaults() if settings else None)


def open_contacts(database_url: str, settings: Settings) -> Contacts:
    """The contacts of that database, as the settings say; close them when done. Raises SettingsError too."""
    from carrick.contacts.contacts import Contacts

    channel, region = settings.contacts_channel, settings.contacts_default_region
    wrong = {
        "name": ("CONTACTS_CHANNEL", channel, "1 to 100 letters, digits and _ . : -"),
        "default_region": ("CONTACTS_DEFAULT_REGION", region, "a country of two letters that has a code, as in GB"),
    }
    try:
        return Contacts.connect(database_url, channel=channel, default_region=region or None)
    except InvalidInput as error:
        if error.field not in wrong:
            raise
        raise refused(*wrong[error.field]) from None


@contextmanager
def opened_store(database_url: str) -> Iterator[Store]:
    """The store of that database, with the schema of this release; closed afterwards."""
    store = open_store(database_url)
    try:
        store.check_schema()
        yield store
    finally:
        store.close()


def channel_of(store: Store, name: str, settings: Settings) -> Channel:
    """The channel, with what OUTBOX_… variables that are set say of what its declarations leave open.

    They are written down, so that they hold for all processes. Raises UnknownChannel or SettingsError.
    """
    known = store.channels()
    if name not in known:
        raise UnknownChannel(name, sorted(known))
    try:
        channel = with_defaults(known[name], settings.channel_settings())
    except InvalidInput as error:
        variable = CHANNEL_VARIABLES.get(error.field, "OUTBOX_…")
        raise SettingsError(f"{variable} does not fit channel {name!r}: {error}") from None
    changed = [option for option in OPTIONS if getattr(channel, option) != getattr(known[name], option)]
    if changed:
        store.declare(channel, keeps=set(OPTIONS) - set(changed))
        options = ", ".join(f"{option}={getattr(channel, option)}" for option in changed)
        log.info("outbox.channel_set", extra={"channel": name, "options": options})
    return channel


def prune_channel(store: Store, channel: str, settings: Settings) -> int:
    """Remove everything of the channel that is past its retention; how many entries."""
    channel_of(store, channel, settings)
    return sum(iter(lambda: store.prune(channel), 0))


def prune_inbox(database_url: str, retention_days: float) -> int:
    """Remove the inbox's events past their retention; how many. Raises a StoreError."""
    inbox = open_inbox(database_url)
    try:
        inbox.check_schema()
        return sum(iter(lambda: inbox.prune(retention_days, max_rows=10_000), 0))
    finally:
        inbox.close()


def relay_settings(settings: Settings) -> RelaySettings:
    """How relays work under these settings."""
    from carrick.relay.relay import RelaySettings

    return RelaySettings(
        owner=settings.instance_id,
        in_flight=settings.sync_batches_in_flight,
        poll_seconds=settings.sync_interval_seconds,
        grace_seconds=settings.sync_grace_seconds,
    )


def metrics(store: Store) -> Metrics:
    """The metrics of this process."""
    from carrick.ops.metrics import Metrics

    return Metrics(store)


def shared_state(settings: Settings, threads: Threads) -> SharedState:
    """Shared state of all replicas; its calls of the database run in the threads. Raises MissingExtra or StoreError."""
    from carrick.state.beside import Beside
    from carrick.state.shared import SharedState

    redis = redis_server(settings)
    tables = _state_tables(settings.database_url)
    tables.check_schema()
    return SharedState(tables, threads, None if redis is None else Beside(redis))


def redis_server(settings: Settings) -> RedisServer | None:
    """The Redis of the settings, if there is one. Raises MissingExtra."""
    if not settings.redis_url:
        return None
    with opening.needed("redis", "redis", "REDIS_URL"):
        from carrick.state.redis import RedisServer
    return RedisServer(settings.redis_url, settings.redis_key_prefix)


def _state_tables(database_url: str) -> Tables:
    database = opening.named_database(database_url)
    if database.backend == "postgres":
        with opening.psycopg_needed():
            from carrick.state.postgres.tables import PostgresTables
        return PostgresTables(database.target)
    from carrick.state.sqlite.tables import SqliteTables

    return SqliteTables(database.target)


def forwarder(settings: Settings, *, is_demo: bool = False) -> Forwarder:
    """The edge forwarder. A SQLite file is created or upgraded; a PostgreSQL database must have been migrated."""
    from carrick.forward.events import CHANNEL
    from carrick.forward.handshake import handshake_of
    from carrick.forward.service import Forwarder
    from carrick.sinks.http import HttpSink

    if not settings.cloud.url:
        raise SettingsError("CLOUD_INGESTION_URL is not set; accepted: the address that batches are posted to")
    prepare(settings.database_url)
    outbox = open_outbox(settings.database_url, settings)
    channel = outbox.channel(CHANNEL, mode="ordered", one_tenant=True)
    sink = HttpSink(settings.cloud, edge_id=settings.edge_id)
    return Forwarder(outbox.store, sink, channel, settings, handshake_of(sink), is_demo=is_demo)


def ingest(settings: Settings) -> Ingest:
    """The receiving side. A SQLite file is created or upgraded; a PostgreSQL database must have been migrated."""
    from carrick.ingest.body import MAX_BODY_BYTES
    from carrick.ingest.service import Ingest

    prepare(settings.database_url)
    outbox = open_outbox(settings.database_url, settings)
    outbox.store.check_schema()
    largest = MAX_BODY_BYTES
    if name := settings.ingest.relay_channel:
        largest = min(largest, _relay_channel(outbox, name, settings).max_payload_bytes)
    contacts = open_contacts(settings.database_url, settings)
    inbox = open_inbox(settings.database_url, relay_channel=name, watcher=resolving(contacts))
    inbox.check_schema()
    return Ingest(inbox, outbox.store, contacts, settings, max_payload_bytes=largest)


def open_inbox(database_url: str, *, relay_channel: str = "", watcher: Watcher | None = None) -> Inbox:
    """The inbox of that database; close it when done. Raises InvalidInput, MissingExtra or a StoreError."""
    database = opening.named_database(database_url)
    if database.backend == "sqlite":
        from carrick.ingest.sqlite.store import SqliteInbox

        return SqliteInbox(database.target, relay_channel=relay_channel, watcher=watcher)
    with opening.psycopg_needed():
        from carrick.ingest.postgres.store import PostgresInbox
    return PostgresInbox(database.target, relay_channel=relay_channel, watcher=watcher)


def resolving(contacts: Contacts) -> Watcher:
    """Resolves the contacts of new events, where their tenant has turned that on."""
    from carrick.contacts import arrival

    def watch(events: Arrivals) -> Arrived | None:
        found = arrival.contacts_in(events.payloads)
        if found is None:
            return None
        by_id = dict(zip(events.event_ids, found, strict=True))

        def arrived(connection: Any, tenant_id: str, new: Sequence[Arrival]) -> None:
            with_contacts = [arrival.Arrival(event.event_id, by_id[event.event_id]) for event in new]
            contacts.arrive_in(connection, tenant_id, with_contacts)

        return arrived

    return watch


def _relay_channel(outbox: Outbox, name: str, settings: Settings) -> Channel:
    """The channel that stored events are put into: as somebody has declared it, else in order per device."""
    if name in outbox.store.channels():
        return channel_of(outbox.store, name, settings)
    try:
        return outbox.channel(name, mode="ordered")
    except InvalidInput as error:
        raise SettingsError(f"INGEST_RELAY_CHANNEL: {error}; or nothing, to relay nothing") from None


def edge_demo(database_url: str, port: int = 8080) -> EdgeDemo:
    """A forwarder on that database with a device and a cloud around it, for `carrick demo`."""
    from carrick.forward.demo import EdgeDemo

    def build(at: int, cloud_url: str) -> Forwarder:
        environment = {
            "DATABASE_URL": database_url,
            "CLOUD_INGESTION_URL": cloud_url,
            "PORT": str(at),
            "METRICS_PORT": "0",
            "INSTANCE_ID": "gateway-1",
            "OUTBOX_BACKOFF_CAP_SECONDS": "5",
            "SYNC_GRACE_SECONDS": "2",
            "INTERNAL_ADMIN_ENABLED": "true",
        }
        return forwarder(read_settings(environment, Path("no .env file")), is_demo=True)

    return EdgeDemo(build, port)


def prepare(database_url: str) -> None:
    """Create or upgrade an embedded database; others are migrated by `carrick migrate`."""
    if opening.named_database(database_url).backend == "sqlite":
        migrate(database_url)


class Drainer(NamedTuple):
    """What `carrick drain` delivers, and how to open it."""

    settings: Settings
    database_url: str
    channels: Sequence[str]
    sink: Callable[[str], Sink]
    outbox: Outbox | None

    @contextmanager
    def opened(self) -> Iterator[tuple[Store, Callable[[], list[Leg]]]]:
        """The store, and a function that makes the sinks (inside the event loop). Raises UnknownChannel."""
        from carrick.relay.crew import Leg

        with self.outbox or open_outbox(self.database_url) as outbox:
            channels = [channel_of(outbox.store, name, self.settings) for name in self.channels]
            yield outbox.store, lambda: [Leg(channel, self.sink(channel.name)) for channel in channels]


def drainer(
    settings: Settings,
    database_url: str,
    *,
    channels: Sequence[str],
    to: Literal["kafka", "http"] | None,
    app: str | None,
    topic: str,
    cloud_events: bool,
    source: str | None,
    url: str | None,
) -> Drainer:
    """What to deliver where. Raises SettingsError, MissingExtra or InvalidInput, whose field is the option."""
    if app is not None:
        return _application(settings, app, channels)
    if to == "http":
        from carrick.sinks.http import HttpSink

        cloud = _cloud_at(settings.cloud, url) if url else settings.cloud
        if not cloud.url:
            raise SettingsError("neither --url nor CLOUD_INGESTION_URL says where to")
        return Drainer(settings, database_url, channels, lambda _: HttpSink(cloud, edge_id=settings.edge_id), None)
    from carrick.sinks.kafka_messages import TopicTemplate

    TopicTemplate(topic)
    if not settings.kafka.bootstrap_servers:
        raise SettingsError(
            "KAFKA_BOOTSTRAP_SERVERS (or KAFKA_BROKER) is not set; accepted: host:port, several with commas"
        )
    options = {"topic": topic, "cloud_events": cloud_events, "source": source}
    return Drainer(settings, database_url, channels, lambda _: _kafka_sink(settings.kafka, options), None)


def _cloud_at(cloud: CloudSettings, url: str) -> CloudSettings:
    """The settings of the cloud with another address. Raises InvalidInput."""
    from carrick.sinks.connecting import destination_of

    chosen = msgspec.structs.replace(cloud, url=url)
    try:
        destination_of(chosen)
    except SettingsError:
        raise InvalidInput("url", f"{mask_url(url)!r:.200} is no address", "http://… or https://…") from None
    return chosen


def _kafka_sink(kafka: KafkaSettings, options: Mapping[str, Any]) -> KafkaSink:
    """Raises SettingsError for a file that holds no certificates."""
    from carrick.sinks.kafka import KafkaSink

    try:
        return KafkaSink(kafka.bootstrap_servers, client_id=kafka.client_id, config=kafka_config(kafka), **options)
    except InvalidInput as error:
        if "ssl.ca.location" in str(error):
            raise refused("KAFKA_CA_FILE", kafka.ca_file, "a PEM file with the certificates to trust") from None
        raise


def kafka_config(kafka: KafkaSettings) -> dict[str, str | int]:
    """How to get into the cluster and how large a message may be, by librdkafka's names."""
    config: dict[str, str | int] = {
        "security.protocol": kafka.security_protocol,
        "message.max.bytes": kafka.message_max_bytes,
    }
    if kafka.security_protocol.startswith("SASL_"):
        config["sasl.mechanism"] = kafka.sasl_mechanism
        config["sasl.username"] = kafka.sasl_username
        config["sasl.password"] = kafka.sasl_password
    if kafka.ca_file:
        config["ssl.ca.location"] = kafka.ca_file
    return config


def _application(settings: Settings, app: str, channels: Sequence[str]) -> Drainer:
    """The handlers of a Python application."""
    from carrick.ops.application import load_outbox
    from carrick.sinks.handler import HandlerSink

    outbox = load_outbox(app)
    handlers = outbox.handlers
    for name in channels:
        if name not in handlers:
            raise InvalidInput("channel", f"{app} has no handler for {name!r}", ", ".join(sorted(handlers)) or "none")
    chosen = channels or sorted(handlers)
    if not chosen:
        raise InvalidInput("app", f"{app} has no handlers", "@outbox.handler(CHANNEL) before a function")
    return Drainer(settings, "", chosen, lambda name: HandlerSink.of(handlers[name]), outbox)


def migrate(database_url: str, *, compat: bool = False) -> list[str]:
    """Create or upgrade the schema; the titles of the migrations applied. Safe with many replicas at once."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.migrate(database.target, _sqlite_parts())
    with opening.psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.migrate(database.target, _postgres_parts(compat))


def pending_migrations(database_url: str, *, compat: bool = False) -> list[str]:
    """The titles of the migrations that `migrate` would apply; changes nothing."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.pending(database.target, _sqlite_parts())
    with opening.psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.pending(database.target, _postgres_parts(compat))


def migration_script(database_url: str, *, compat: bool = False) -> str:
    """All migrations as one SQL text for an empty database of that kind; does not connect."""
    database = _checked(database_url, compat)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import migrate as sqlite

        return sqlite.script(_sqlite_parts())
    with opening.psycopg_needed():
        from carrick.outbox.postgres import migrate as postgres
    return postgres.script(_postgres_parts(compat))


def parts_of(database_url: str) -> list[Part]:
    """Every part of Carrick that has tables in that kind of database."""
    return _sqlite_parts() if opening.named_database(database_url).backend == "sqlite" else _postgres_parts(False)


def _sqlite_parts() -> list[Part]:
    """Every part of Carrick that has tables in an embedded database."""
    from carrick.contacts.sqlite.store import PART as CONTACTS
    from carrick.ingest.sqlite.store import PART as INGEST
    from carrick.outbox.sqlite.migrate import ENGINE
    from carrick.state.sqlite.tables import STATE
    from carrick_scoreboard.store.sqlite.tables import PART as SCOREBOARD

    return [ENGINE, CONTACTS, INGEST, STATE, SCOREBOARD]


def _postgres_parts(compat: bool) -> list[Part]:
    """Every part of Carrick that has tables or functions on PostgreSQL."""
    from carrick.contacts.postgres.store import COMPAT as CONTACTS_COMPAT
    from carrick.contacts.postgres.store import PART as CONTACTS
    from carrick.ingest.postgres.store import PART as INGEST
    from carrick.outbox.postgres.migrate import COMPAT, ENGINE
    from carrick.state.postgres.tables import STATE
    from carrick_scoreboard.store.postgres.tables import PART as SCOREBOARD

    parts = [ENGINE, CONTACTS, INGEST, STATE, SCOREBOARD]
    return [*parts, COMPAT, CONTACTS_COMPAT] if compat else parts


def _checked(database_url: str, compat: bool) -> DatabaseUrl:
    """The database; the views of other outboxes exist on PostgreSQL only."""
    database = opening.named_database(database_url)
    if compat and database.backend == "sqlite":
        raise InvalidInput("compat", "SQLite has no such views", "--compat with a postgresql:// database")
    return database
