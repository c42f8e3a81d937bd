"""`carrick drain`: relay channels to Kafka, to an HTTP endpoint or to Python handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import CycloptsError, Parameter

from carrick import wiring
from carrick.cli.printing import AsJson, Flag, about, print_json, print_line
from carrick.cli.running import run_until_stopped
from carrick.errors import InvalidInput, SettingsError
from carrick.outbox.store import MOST_TROUBLED, Store
from carrick.relay.crew import Leg, run_crew, run_crew_once
from carrick.relay.meter import Tally
from carrick.relay.report import RunReport, report_of
from carrick.settings import Settings, read_settings
from carrick.variables import mask_url

if TYPE_CHECKING:
    from carrick.ops.metrics import Metrics

log = logging.getLogger("carrick.drain")

MOST_SECONDS = 3_600
MAX_BODY_BYTES = 1024


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
    serve: Flag = False,
    seconds: float = 50.0,
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
    serve
        Deliver when called: POST /api/v1/drain on HOST and PORT makes one such run. Needs ADMIN_TOKEN.
    seconds
        With --serve: after so long a run claims nothing more, and answers.
    as_json
        With --once: print one JSON object for a script to read.
    database
        The database to use instead of DATABASE_URL.
    """
    if (to is None) == (app is None):
        raise CycloptsError(msg="Give --to kafka, --to http or --app MODULE.")
    if to is not None and not channel:
        raise CycloptsError(msg="Give the --channel to deliver.")
    if once and serve:
        raise CycloptsError(msg="Give --once or --serve, not both.")
    if not 0 < seconds <= MOST_SECONDS:
        raise CycloptsError(
            msg=f"--seconds {seconds:g} is out of range; accepted: more than 0, at most {MOST_SECONDS}."
        )
    settings = read_settings(service="drain")
    if serve and not settings.admin_token:
        raise SettingsError("ADMIN_TOKEN is not set; accepted: the token that callers of --serve bring")
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

        async def work(stopping: asyncio.Event) -> int:
            if once:
                totals = await run_crew_once(store, legs(), relay_settings, stopping)
                return _printed(report_of(store, totals), as_json)
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
                if serve:
                    await _serve(store, legs, settings, metrics, stopping, seconds, started)
                else:
                    log.info("drain.started", extra=started)
                    await run_crew(store, legs(), relay_settings, stopping, metrics)
            return 0

        return run_until_stopped(work)


async def _serve(
    store: Store,
    legs: Callable[[], list[Leg]],
    settings: Settings,
    metrics: Metrics,
    stopping: asyncio.Event,
    seconds: float,
    started: Mapping[str, object],
) -> None:
    """Wait to be called until told to stop."""
    from carrick.web.called_drain import CalledDrain
    from carrick.web.routes import application
    from carrick.web.server import serving
    from carrick.web.tokens import AdminToken

    token = AdminToken(settings.admin_token, settings.trusted_proxies)
    drain = CalledDrain(store, legs, wiring.relay_settings(settings), token, seconds=seconds, meter=metrics)
    app = application(drain.routes(), max_body_bytes=MAX_BODY_BYTES, trusted=settings.trusted_proxies)
    limits, trusted = settings.web, settings.trusted_proxies
    async with serving(app, settings.host, settings.port, limits=limits, trusted=trusted) as port:
        log.info("drain.started", extra={**started, "address": f"http://{settings.host}:{port}/api/v1/drain"})
        await stopping.wait()
        await drain.stop()


@contextmanager
def _bad_usage() -> Iterator[None]:
    """A value of an option that can never be is bad usage, not a failure."""
    try:
        yield
    except InvalidInput as error:
        if error.field not in ("topic", "url"):
            raise
        raise CycloptsError(msg=f"--{error}.") from None


def _printed(report: RunReport, as_json: bool) -> int:
    """One line per channel; the exit code."""
    if as_json:
        print_json(report)
    else:
        for name, tally in report.channels.items():
            counts = ", ".join(
                f"{field} {getattr(tally, field)}" for field in Tally.__struct_fields__ if field != "lost"
            )
            held = about(report.held[name], is_estimate=name in report.held_approximate)
            print_line(f"{name}: {counts}, held {held}, troubled {_up_to_most(report.troubled[name])}")
    return 1 if report.failed else 0


def _up_to_most(troubled: int) -> str:
    return f"{troubled:,} or more" if troubled >= MOST_TROUBLED else str(troubled)
