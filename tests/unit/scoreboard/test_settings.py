"""The scoreboard's settings: every variable, and one line for every wrong value."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest

from carrick.errors import SettingsError
from carrick_scoreboard.osm.limits import Thresholds
from carrick_scoreboard.sealing import KEY_BYTES, key_text
from carrick_scoreboard.settings import OSM, Rate, ScoreboardSettings, read_keys, read_scoreboard_settings

NOWHERE = Path("no-such-folder") / ".env"
REQUIRED = {"OSM_CLIENT_ID": "app-7", "OSM_CLIENT_SECRET": "hush-secret"}
KEY_1, KEY_2 = key_text("k1", b"1" * KEY_BYTES), key_text("k2", b"2" * KEY_BYTES)


def read(**environ: str) -> ScoreboardSettings:
    return read_scoreboard_settings({**REQUIRED, **environ}, NOWHERE)


def test_without_more_than_the_application_the_documented_defaults_hold() -> None:
    settings = read()
    assert (settings.osm.domain, settings.osm.client_id, settings.osm.client_secret) == (OSM, "app-7", "hush-secret")
    assert (settings.exposed_domain, settings.is_https) == ("http://localhost:8080", False)
    assert settings.cache_fallback_seconds == 192 * 3600
    assert settings.thresholds == Thresholds(caution=200, warning=100, critical=20)
    assert (settings.debounce_seconds, settings.poll_seconds, settings.merge_leaders) == (15.0, 30.0, False)
    assert (settings.device_code_seconds, settings.device_poll_seconds) == (300, 5)
    assert (settings.authorize_rate, settings.entry_rate) == (Rate(6, 60), Rate(1, 5))
    assert (settings.keys, settings.trusted_proxies, settings.country_header) == (None, (), "CF-IPCountry")


READ: list[tuple[str, str, str, Any]] = [
    ("OSM_DOMAIN", "http://localhost:8090/", "osm.domain", "http://localhost:8090"),
    ("OSM_CLIENT_ID", " app-8 ", "osm.client_id", "app-8"),
    ("OSM_CLIENT_SECRET", " other ", "osm.client_secret", "other"),
    ("EXPOSED_DOMAIN", "https://scores.example/", "exposed_domain", "https://scores.example"),
    ("CACHE_FALLBACK_TTL", "8d", "cache_fallback_seconds", 8 * 86_400),
    ("CACHE_FALLBACK_TTL", "90m", "cache_fallback_seconds", 5_400),
    ("RATE_LIMIT_CAUTION", "500", "thresholds.caution", 500),
    ("RATE_LIMIT_WARNING", "150", "thresholds.warning", 150),
    ("RATE_LIMIT_CRITICAL", "0", "thresholds.critical", 0),
    ("SCORE_DEBOUNCE_SECONDS", "0.5", "debounce_seconds", 0.5),
    ("SCORE_POLL_SECONDS", "60", "poll_seconds", 60.0),
    ("SCORE_WORKERS", "8", "workers", 8),
    ("SCORE_MERGE_LEADERS", "yes", "merge_leaders", True),
    ("DEVICE_CODE_EXPIRY", "600s", "device_code_seconds", 600),
    ("DEVICE_POLL_INTERVAL", "10", "device_poll_seconds", 10),
    ("DEVICE_AUTHORIZE_RATE_LIMIT", "10/3600", "authorize_rate", Rate(10, 3600)),
    ("DEVICE_ENTRY_RATE_LIMIT", "2/1", "entry_rate", Rate(2, 1)),
    (
        "TRUSTED_PROXIES",
        "10.1.2.3/8, ::1",
        "trusted_proxies",
        (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("::1")),
    ),
    ("COUNTRY_HEADER", "X-Country", "country_header", "X-Country"),
    ("SCORE_RETENTION_DAYS", "30", "score_retention_days", 30),
    ("BOARD_RETENTION_DAYS", "1", "board_retention_days", 1),
    ("DEVICE_RETENTION_DAYS", "7", "device_retention_days", 7),
    ("AUDIT_RETENTION_DAYS", "3650", "audit_retention_days", 3650),
]


@pytest.mark.parametrize(("variable", "text", "place", "meant"), READ)
def test_every_variable_is_read(variable: str, text: str, place: str, meant: Any) -> None:
    value: Any = read(**{variable: text})
    for name in place.split("."):
        value = getattr(value, name)
    assert value == meant


WRONG = {
    "OSM_DOMAIN": ["osm.example", "ftp://osm.example", "https://osm.example/path", "https://a b"],
    "EXPOSED_DOMAIN": ["localhost:8080", "https://scores.example/board", "https://scores.example?x=1"],
    "CACHE_FALLBACK_TTL": ["0", "59s", "367d", "8 days", "-1", "1e9", "\u0661d"],
    "RATE_LIMIT_CAUTION": ["-1", "many"],
    "RATE_LIMIT_WARNING": ["1.5"],
    "RATE_LIMIT_CRITICAL": [" x "],
    "SCORE_DEBOUNCE_SECONDS": ["-1", "3601", "nan"],
    "SCORE_POLL_SECONDS": ["0", "soon"],
    "SCORE_WORKERS": ["0", "9", "all"],
    "SCORE_MERGE_LEADERS": ["maybe"],
    "DEVICE_CODE_EXPIRY": ["29", "2d"],
    "DEVICE_POLL_INTERVAL": ["0", "11m"],
    "DEVICE_AUTHORIZE_RATE_LIMIT": ["6", "0/60", "6/0", "6/60/2", "-6/60", "6 / 60"],
    "DEVICE_ENTRY_RATE_LIMIT": ["1/5s"],
    "TRUSTED_PROXIES": ["10.0.0.0/33", "proxy.example", "10.0.0.0/8;::1"],
    "SCORE_RETENTION_DAYS": ["29", "36501", "1.5"],
    "BOARD_RETENTION_DAYS": ["0"],
    "DEVICE_RETENTION_DAYS": ["0"],
    "AUDIT_RETENTION_DAYS": ["0", "for ever"],
    "COUNTRY_HEADER": ["CF IPCountry", "x" * 65, "Country:"],
}


@pytest.mark.parametrize(("variable", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_value_is_one_line_with_the_variable_the_value_and_what_is_accepted(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(**{variable: value})
    line = str(refused.value)
    assert line.startswith(f"{variable}={value.strip()!r} ")
    assert "accepted: " in line
    assert "\n" not in line


@pytest.mark.parametrize("variable", ["OSM_CLIENT_ID", "OSM_CLIENT_SECRET"])
def test_without_the_application_the_missing_variable_is_named(variable: str) -> None:
    for nothing in ("", "  "):
        with pytest.raises(SettingsError, match=f"^{variable} is not set; accepted: ") as refused:
            read(**{variable: nothing})
        assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("caution", "warning", "critical"), [("200", "300", "20"), ("200", "100", "101"), ("10", "100", "20")]
)
def test_thresholds_that_overtake_each_other_are_refused_together(caution: str, warning: str, critical: str) -> None:
    with pytest.raises(SettingsError, match="RATE_LIMIT_CRITICAL, RATE_LIMIT_WARNING, RATE_LIMIT_CAUTION="):
        read(RATE_LIMIT_CAUTION=caution, RATE_LIMIT_WARNING=warning, RATE_LIMIT_CRITICAL=critical)


@pytest.mark.parametrize("variable", ["OSM_DOMAIN", "EXPOSED_DOMAIN"])
def test_a_password_in_an_address_is_refused_and_not_shown(variable: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(**{variable: "https://user:hush@osm.example"})
    assert "hush" not in str(refused.value)
    assert str(refused.value).startswith(f"{variable}='https://user:***@osm.example'")


def test_people_come_by_https_when_the_address_says_so() -> None:
    assert read(EXPOSED_DOMAIN="https://scores.example").is_https


def test_the_first_key_seals_and_all_of_them_open() -> None:
    keys = read(CARRICK_SECRET_KEYS=f"{KEY_2}, {KEY_1}").keys
    assert keys is not None
    assert repr(keys) == "KeyRing(k2, k1)"
    assert keys.newest == "k2"


@pytest.mark.parametrize("value", ["hush", "k1:aHVzaA==", f"{KEY_1},k3:hush", f"{KEY_1},{KEY_1}", f":{KEY_1}"])
def test_a_wrong_key_is_refused_without_any_part_of_it(value: str) -> None:
    for reading in (read, lambda **environ: read_keys(environ, NOWHERE)):
        with pytest.raises(SettingsError) as refused:
            reading(CARRICK_SECRET_KEYS=value)
        line = str(refused.value)
        assert line.startswith("CARRICK_SECRET_KEYS='***' ")
        assert "accepted: " in line
        for part in ("hush", "aHVzaA", KEY_1.partition(":")[2]):
            assert part not in line


def test_the_keys_are_read_without_an_application(tmp_path: Path) -> None:
    assert read_keys({}, NOWHERE) is None
    file = tmp_path / ".env"
    file.write_text(f"CARRICK_SECRET_KEYS={KEY_1}\n")
    keys = read_keys({}, file)
    assert keys is not None
    assert keys.newest == "k1"


def test_the_environment_wins_over_the_env_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("OSM_CLIENT_ID=file\nOSM_CLIENT_SECRET=file\nDEVICE_POLL_INTERVAL=7\n")
    settings = read_scoreboard_settings({"OSM_CLIENT_ID": "environment"}, file)
    assert (settings.osm.client_id, settings.device_poll_seconds) == ("environment", 7)


def test_no_secret_shows_when_settings_are_printed() -> None:
    shown = repr(read(CARRICK_SECRET_KEYS=KEY_1))
    assert "hush" not in shown
    assert KEY_1.partition(":")[2] not in shown
