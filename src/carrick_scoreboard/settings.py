"""What is set from outside for the scoreboard alone. Read beside `carrick.settings`, by the same rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from carrick.errors import SettingsError
from carrick.variables import (
    Network,
    Secret,
    listed,
    mask_url,
    networks,
    number,
    read_variables,
    refused,
    web_address,
    whole,
    yes,
)
from carrick_scoreboard.osm.client import Application
from carrick_scoreboard.osm.limits import Thresholds
from carrick_scoreboard.sealing import KEYS_ACCEPTED, KeyRing, keys_in

OSM = "https://www.onlinescoutmanager.co.uk"
DURATION = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhd]?)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
RATE = re.compile(r"(?P<count>[0-9]{1,6})/(?P<seconds>[0-9]{1,6})")
HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")


class Rate(msgspec.Struct, frozen=True):
    """So many requests in so many seconds."""

    count: int
    seconds: int


class ScoreboardSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The scoreboard's own settings."""

    osm: Application
    exposed_domain: str = "http://localhost:8080"
    """The address that people and devices see, without a slash at the end."""
    cache_fallback_seconds: int = 192 * 3_600
    thresholds: Thresholds = Thresholds()
    debounce_seconds: float = 15.0
    poll_seconds: float = 30.0
    workers: int = 1
    """How many sections' points go to OSM at once."""
    merge_leaders: bool = False
    device_code_seconds: int = 300
    device_poll_seconds: int = 5
    authorize_rate: Rate = Rate(6, 60)
    entry_rate: Rate = Rate(1, 5)
    keys: KeyRing | None
    """None: none was given; an embedded database brings its own."""
    trusted_proxies: tuple[Network, ...] = ()
    country_header: str = "CF-IPCountry"
    score_retention_days: int = 400
    board_retention_days: int = 400
    device_retention_days: int = 90
    audit_retention_days: int = 730

    @property
    def is_https(self) -> bool:
        """Whether people come by https: cookies are secure then."""
        return self.exposed_domain.startswith("https://")


def read_scoreboard_settings(
    environ: Mapping[str, str] | None = None, env_file: Path | None = None
) -> ScoreboardSettings:
    """Read the environment and `.env` in the working directory, or what is given instead. Raises SettingsError."""
    values = read_variables(environ, env_file)
    return ScoreboardSettings(
        osm=_application(values),
        exposed_domain=_exposed_domain(values),
        cache_fallback_seconds=_duration(values, "CACHE_FALLBACK_TTL", 192 * 3_600, 60, 366 * 86_400),
        thresholds=_thresholds(values),
        debounce_seconds=number(values, "SCORE_DEBOUNCE_SECONDS", 15.0, 0, 3_600),
        poll_seconds=number(values, "SCORE_POLL_SECONDS", 30.0, 0.01, 86_400),
        workers=whole(values, "SCORE_WORKERS", 1, 1, 8),
        merge_leaders=yes(values, "SCORE_MERGE_LEADERS"),
        device_code_seconds=_duration(values, "DEVICE_CODE_EXPIRY", 300, 30, 86_400),
        device_poll_seconds=_duration(values, "DEVICE_POLL_INTERVAL", 5, 1, 600),
        authorize_rate=_rate(values, "DEVICE_AUTHORIZE_RATE_LIMIT", Rate(6, 60)),
        entry_rate=_rate(values, "DEVICE_ENTRY_RATE_LIMIT", Rate(1, 5)),
        keys=_keys(values),
        trusted_proxies=networks(values, "TRUSTED_PROXIES"),
        country_header=_header(values, "COUNTRY_HEADER", "CF-IPCountry"),
        score_retention_days=whole(values, "SCORE_RETENTION_DAYS", 400, 30, 36_500),
        board_retention_days=whole(values, "BOARD_RETENTION_DAYS", 400, 1, 36_500),
        device_retention_days=whole(values, "DEVICE_RETENTION_DAYS", 90, 1, 36_500),
        audit_retention_days=whole(values, "AUDIT_RETENTION_DAYS", 730, 1, 36_500),
    )


def _application(values: Mapping[str, str]) -> Application:
    for variable in ("OSM_CLIENT_ID", "OSM_CLIENT_SECRET"):
        if not values.get(variable, "").strip():
            raise SettingsError(f"{variable} is not set; accepted: what OSM gave for your application")
    domain = web_address(values, "OSM_DOMAIN") or OSM
    return Application(
        domain=_without_path("OSM_DOMAIN", domain),
        client_id=values["OSM_CLIENT_ID"].strip(),
        client_secret=Secret(values["OSM_CLIENT_SECRET"].strip()),
    )


def _exposed_domain(values: Mapping[str, str]) -> str:
    """The domain; `/` at its end does not matter."""
    return _without_path("EXPOSED_DOMAIN", web_address(values, "EXPOSED_DOMAIN") or "http://localhost:8080")


def _without_path(variable: str, address: str) -> str:
    """An address of a server, without a path, a query or a name in it."""
    bare = address.rstrip("/")
    if not re.fullmatch(r"https?://[^\s/?#@]+", bare):
        raise refused(variable, mask_url(address), "http://HOST[:PORT] or https://HOST[:PORT], without a path")
    return bare


def _thresholds(values: Mapping[str, str]) -> Thresholds:
    known = Thresholds()
    found = Thresholds(
        caution=whole(values, "RATE_LIMIT_CAUTION", known.caution, 0, 10**9),
        warning=whole(values, "RATE_LIMIT_WARNING", known.warning, 0, 10**9),
        critical=whole(values, "RATE_LIMIT_CRITICAL", known.critical, 0, 10**9),
    )
    if not found.critical <= found.warning <= found.caution:
        names = "RATE_LIMIT_CRITICAL, RATE_LIMIT_WARNING, RATE_LIMIT_CAUTION"
        shown = f"{found.critical}, {found.warning}, {found.caution}"
        raise refused(names, shown, "three numbers, each at least the one before")
    return found


def _duration(values: Mapping[str, str], variable: str, default: int, low: int, high: int) -> int:
    """Whole seconds, from `300`, `300s`, `5m`, `192h` or `8d`."""
    text = values.get(variable, "").strip()
    if not text:
        return default
    found = DURATION.fullmatch(text)
    seconds = int(found["count"]) * UNITS[found["unit"]] if found else -1
    if not low <= seconds <= high:
        raise refused(variable, text, f"seconds, or a number with s, m, h or d; from {low} s to {high} s")
    return seconds


def _rate(values: Mapping[str, str], variable: str, default: Rate) -> Rate:
    text = values.get(variable, "").strip()
    if not text:
        return default
    found = RATE.fullmatch(text)
    if found is None or not int(found["count"]) or not int(found["seconds"]):
        raise refused(variable, text, "REQUESTS/SECONDS, as in 6/60")
    return Rate(int(found["count"]), int(found["seconds"]))


def read_keys(environ: Mapping[str, str] | None = None, env_file: Path | None = None) -> KeyRing | None:
    """The keys alone, for what needs no OSM; None when none are given. Raises SettingsError."""
    return _keys(read_variables(environ, env_file))


def _keys(values: Mapping[str, str]) -> KeyRing | None:
    """The keys that seal what is secret. No part of a wrong one is shown."""
    items = listed(values.get("CARRICK_SECRET_KEYS", ""))
    if not items:
        return None
    try:
        return KeyRing(keys_in(list(items)))
    except ValueError:
        raise refused("CARRICK_SECRET_KEYS", "***", f"a list with commas of {KEYS_ACCEPTED}") from None


def _header(values: Mapping[str, str], variable: str, default: str) -> str:
    text = values.get(variable, "").strip() or default
    if not HEADER_NAME.fullmatch(text):
        raise refused(variable, text, "the name of an HTTP header")
    return text
