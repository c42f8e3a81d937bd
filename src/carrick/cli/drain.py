"""`carrick drain`: relay channels to Kafka, to an HTTP endpoint or to Python handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Literal

from cyclopts import CycloptsError, Parameter

from carrick import wiring
from carrick.cli.printing import AsJson, Flag, about, print_json, print_line
from carrick.cli.running import run_until_stopped
from carrick.entry import ChannelStats
from carrick.errors import InvalidInput
from carrick.outbox.store import MOST_TROUBLED
from carrick.relay.crew import run_crew, run_crew_once
from carrick.relay.meter import Tally
from carrick.settings import read_settings
from carrick.variables import mask_url

log = logging.getLogger("carrick.drain")


def drain(
    *,
    channel: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    to: Literal["kafka", "http"] | None = None,
    app: str | None = None,
    topic: str = "{event_type}",
    cloud_events: Flag = False,
    source: str | None = None,
    url: str | None = None,
    once: Flag = False,
    as_json: AsJson = False,
    database: str | None = None,
) -> int:
    """Deliver a channel's entries until Ctrl-C, or with --once what is due now.

    Any number of replicas may run beside each other. With --once it also removes ended entries past their retention,
    and ends with exit code 1 when something is left because of errors.

    Parameters
    ----------
    channel
        The channels to deliver. With --app: only these of its handlers' channels.
    to
        Where to: kafka (KAFKA_BOOTSTRAP_SERVERS) or http (--url, else CLOUD_INGESTION_URL).
    app
        Instead of --to: package.module or package.module:attribute of an Outbox with handlers.
    topic
        With --to kafka: the topic, with {event_type}, {channel} and {tenant_id} filled in.
    cloud_events
        With --to kafka: also send CloudEvents headers.
    source
        With --cloud-events: their source, instead of /carrick/CHANNEL.
    url
        With --to http: the endpoint.
    once
        Deliver what is due now, print one line per channel, and end. For cron.
    as_json
        With --once: print one JSON object for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    if (to is None) == (app is None):
        raise CycloptsError(msg="Give --to kafka, --to http or --app MODULE.")
    if to is not None and not channel:
        raise CycloptsError(msg="Give the --channel to deliver.")
    settings = read_settings(service="drain")
    where = database or settings.database_url
    with _bad_usage():
        drainer = wiring.drainer(
            settings,
            where,
            channels=channel,
            to=to,
            app=app,
            topic=topic,
            cloud_events=cloud_events,
            source=source,
            url=url,
        )
    with drainer.opened() as (store, legs):
        relay_settings = wiring.relay_settings(settings)

        async def serve(stopping: asyncio.Event) -> int:
            if once:
                totals = await run_crew_once(store, legs(), relay_settings, stopping)
                stats = {stats.channel: stats for stats in store.stats()}
                return _report(totals, stats, {name: store.troubled(name) for name in totals}, as_json)
            from carrick.web.server import metrics_app, serving  # no other command should wait for its packages

            metrics = wiring.metrics(store)
            figures = metrics_app(lambda: asyncio.to_thread(metrics.text))
            async with serving(
                figures, settings.host, settings.metrics_port, "METRICS_PORT", limits=settings.web
            ) as port:
                started = {
                    "channels": ", ".join(drainer.channels),
                    "to": app or to,
                    "database": mask_url(where),
                    "metrics": f"http://{settings.host}:{port}/metrics",
                }
                log.info("drain.started", extra=started)
                await run_crew(store, legs(), relay_settings, stopping, metrics)
            return 0

        return run_until_stopped(serve)


@contextmanager
def _bad_usage() -> Iterator[None]:
    """A value of an option that can never be is bad usage, not a failure."""
    try:
        yield
    except InvalidInput as error:
        if error.field not in ("topic", "url"):
            raise
        raise CycloptsError(msg=f"--{error}.") from None


def _report(
    totals: Mapping[str, Tally], stats: Mapping[str, ChannelStats], troubled: Mapping[str, int], as_json: bool
) -> int:
    """One line per channel. Left because of errors is what was tried in vain, now or before, and what a closed gate
    holds."""
    left = {name: tally.retried + tally.released + tally.dead + tally.lost for name, tally in totals.items()}
    held = {name: stats[name].held_count for name in totals}
    failed = any(left.values()) or any(held.values()) or any(troubled.values())
    if as_json:
        estimated = [name for name in totals if "held_count" in stats[name].approximate]
        report = {"channels": totals, "held": held, "held_approximate": estimated, "troubled": troubled}
        print_json({**report, "failed": failed})
        return 1 if failed else 0
    for name, tally in totals.items():
        counts = ", ".join(f"{field} {getattr(tally, field)}" for field in Tally.__struct_fields__ if field != "lost")
        held_now = about(stats[name], "held_count", held[name])
        print_line(f"{name}: {counts}, held {held_now}, troubled {_up_to_most(troubled[name])}")
    return 1 if failed else 0


def _up_to_most(troubled: int) -> str:
    return f"{troubled:,} or more" if troubled >= MOST_TROUBLED else str(troubled)
