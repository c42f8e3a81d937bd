from __future__ import annotations

import re
from pathlib import Path

import pytest

from carrick.errors import CarrickError, InvalidInput, SettingsError
from carrick.outbox import opening
from carrick.outbox.channel import Channel
from carrick.settings import DatabaseUrl, Settings, parse_database_url, read_settings
from carrick.variables import listed, mask_url, parse_env_line, read_env_file

NOWHERE = Path("no-such-folder") / ".env"

NUMBERS = {
    "OUTBOX_BATCH_SIZE": ("batch_rows", "1", "10000"),
    "OUTBOX_BATCH_BYTES": ("batch_bytes", "1", "1073741824"),
    "OUTBOX_LEASE_SECONDS": ("lease_seconds", "1", "86400"),
    "OUTBOX_MAX_ATTEMPTS": ("max_attempts", "1", "1000"),
    "OUTBOX_BACKOFF_CAP_SECONDS": ("backoff_cap_seconds", "1", "2678400"),
    "OUTBOX_RETENTION_DAYS": ("retention_days", "0", "36500"),
    "OUTBOX_DEAD_RETENTION_DAYS": ("dead_retention_days", "0", "36500"),
}

BAD_URLS = [
    "carrick.db",
    "sqlite:carrick.db",
    "sqlite://carrick.db",
    "sqlite:///",
    "sqlite:///:memory:",
    "sqlite:///carrick.db?mode=ro",
    "mysql://u:secret@h/db",
    "postgresql+psycopg://u:secret@h/db",
    "host=localhost dbname=x",
]


def read(**environ: str) -> Settings:
    return read_settings(environ, NOWHERE)


def test_without_any_variable_the_documented_defaults_hold() -> None:
    settings = read()
    assert settings.database_url == "sqlite:///carrick.db"
    assert settings.channel_defaults() == {
        "batch_rows": 100,
        "batch_bytes": 1048576,
        "lease_seconds": 120,
        "max_attempts": 10,
        "backoff_cap_seconds": 300.0,
        "retention_days": 7.0,
        "dead_retention_days": 30.0,
        "max_backlog_bytes": None,
        "on_full": "reject",
    }


def test_the_defaults_are_those_of_a_channel_that_says_nothing() -> None:
    channel = Channel(name="any")
    assert {name: getattr(channel, name) for name in read().channel_defaults()} == read().channel_defaults()


@pytest.mark.parametrize("variable", NUMBERS)
def test_both_ends_of_a_range_are_accepted_by_the_settings_and_by_a_channel(variable: str) -> None:
    option, low, high = NUMBERS[variable]
    for text in (low, high):
        defaults = read(**{variable: text}).channel_defaults()
        assert defaults[option] == float(text)
        assert getattr(Channel(name="any", **defaults), option) == float(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("variable", NUMBERS)
@pytest.mark.parametrize("text", ["-1", "99999999999", "ten", "1e400", "nan", "1,5", "0x10", "١٢٣٤٥٦٧٨٩٠١٢٣"])
def test_a_wrong_number_is_refused_in_one_line_with_the_variable_the_value_and_the_range(
    variable: str, text: str
) -> None:
    _, low, high = NUMBERS[variable]
    with pytest.raises(SettingsError) as refused:
        read(**{variable: text})
    line = str(refused.value)
    assert line.startswith(f"{variable}={text!r} ")
    assert f"from {low} to {high}" in line
    assert "\n" not in line


def test_a_variable_set_to_nothing_counts_as_not_set() -> None:
    assert read(OUTBOX_BATCH_SIZE="", DATABASE_URL="", INSTANCE_ID="", HOSTNAME="gate-7").instance_id == "gate-7"


def test_settings_errors_are_carrick_errors() -> None:
    assert issubclass(SettingsError, CarrickError)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        read().instance_id = "other"  # type: ignore[misc]


def test_the_instance_id_wins_over_the_host_name() -> None:
    assert read(INSTANCE_ID="edge-1", HOSTNAME="gate-7").instance_id == "edge-1"


def test_without_a_name_two_instances_generate_two() -> None:
    assert read().instance_id != read().instance_id


def test_an_instance_id_with_control_characters_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^INSTANCE_ID="):
        read(INSTANCE_ID="edge\n1")


@pytest.mark.parametrize(
    ("url", "meaning"),
    [
        ("sqlite:///carrick.db", DatabaseUrl("sqlite", "carrick.db")),
        ("sqlite:////var/lib/carrick.db", DatabaseUrl("sqlite", "/var/lib/carrick.db")),
        ("sqlite:///with%20space.db", DatabaseUrl("sqlite", "with space.db")),
        ("postgresql://u@h/db", DatabaseUrl("postgres", "postgresql://u@h/db")),
        ("postgres://h/db", DatabaseUrl("postgres", "postgres://h/db")),
    ],
)
def test_a_database_url_says_which_database_it_means(url: str, meaning: DatabaseUrl) -> None:
    assert parse_database_url(url) == meaning


@pytest.mark.parametrize("url", BAD_URLS)
def test_any_other_database_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^DATABASE_URL=") as refused:
        read(DATABASE_URL=url)
    assert "secret" not in str(refused.value)
    assert "sqlite:///FILE" in str(refused.value)


@pytest.mark.parametrize("url", [url for url in BAD_URLS if not url.startswith("postgres")])
def test_the_outbox_refuses_the_same_urls_as_the_settings(url: str) -> None:
    with pytest.raises((SettingsError, InvalidInput)):
        opening.open_store(url)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("postgresql://u:secret@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u:sec:ret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:se@cret@h/db", "postgresql://u:***@h/db"),
        (
            "postgresql://h/db?user=u&password=secret&sslmode=require",
            "postgresql://h/db?user=u&password=***&sslmode=require",
        ),
        ("postgresql://h/db?sslpassword=secret", "postgresql://h/db?sslpassword=***"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("sqlite:///carrick.db", "sqlite:///carrick.db"),
    ],
)
def test_passwords_in_urls_are_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=value", "value"),
        ("  KEY = value  ", "value"),
        ("export KEY=value", "value"),
        ("KEY=value # why", "value"),
        ("KEY=#nothing", ""),
        ("KEY=a#b", "a#b"),
        ("KEY=a=b", "a=b"),
        ("KEY=", ""),
        ("KEY='single # quoted \\n'", "single # quoted \\n"),
        ('KEY="double # quoted"  # why', "double # quoted"),
        (r'KEY="line\nline \"q\" \\ \$"', 'line\nline "q" \\ $'),
    ],
)
def test_a_line_of_an_env_file_is_read(line: str, value: str) -> None:
    assert parse_env_line(line) == {"KEY": value}


@pytest.mark.parametrize("line", ["", "   ", "# KEY=value"])
def test_blank_lines_and_comments_of_an_env_file_say_nothing(line: str) -> None:
    assert parse_env_line(line) == {}


@pytest.mark.parametrize(
    "line", ["secret", "1KEY=secret", "KEY KEY=secret", 'KEY="secret', "KEY='secret' more", "=secret"]
)
def test_a_line_that_cannot_be_read_is_named_by_number_without_its_value(tmp_path: Path, line: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"# first\n{line}\n")
    with pytest.raises(SettingsError, match=r"\.env, line 2: ") as refused:
        read_env_file(file)
    assert "secret" not in str(refused.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"KEY=\xff\xfe")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_env_file(file)


def test_a_missing_env_file_is_an_empty_one() -> None:
    assert read_env_file(NOWHERE) == {}


def test_the_environment_wins_over_the_env_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("OUTBOX_BATCH_SIZE=7\nOUTBOX_MAX_ATTEMPTS=3\n")
    settings = read_settings({"OUTBOX_BATCH_SIZE": "9"}, file)
    assert (settings.outbox_batch_size, settings.outbox_max_attempts) == (9, 3)


def test_the_env_file_of_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("DATABASE_URL=sqlite:///from-file.db\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert read_settings().database_url == "sqlite:///from-file.db"


BAD = {
    "PORT": ["x", "-1", "65536"],
    "METRICS_PORT": ["70000"],
    "CLOUD_INGESTION_URL": ["cloud:9999", "ftp://cloud/batch", "http://", "http:// cloud/"],
    "CLOUD_AUTH_MODE": ["basic", "API_KEY"],
    "CLOUD_COMPRESSION": ["br"],
    "CLOUD_CLIENT_CERT": ["no-such-file.pem"],
    "CLOUD_CA_FILE": ["no-such-file.pem"],
    "CLOUD_PROXY": ["proxy:3128"],
    "CLOUD_TIMEOUT_SECONDS": ["0", "nan", "soon"],
    "CLOUD_BYTES_PER_SECOND": ["-1", "1k"],
    "SYNC_FORWARDER_MODE": ["off"],
    "SYNC_INTERVAL_MS": ["1", "a minute"],
    "SYNC_BATCHES_IN_FLIGHT": ["0", "65"],
    "INTERNAL_ADMIN_ENABLED": ["maybe"],
    "OUTBOX_MAX_BACKLOG_BYTES": ["-1"],
    "OUTBOX_ON_FULL": ["drop"],
    "EDGE_ID": ["\udcff", "gate\nway", "a\x00b", "x" * 256],
    "ADMIN_TOKEN": ["\udcff", "hush\nhush"],
}


@pytest.mark.parametrize(("variable", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_wrong_value_is_named_with_what_is_accepted(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(**{variable: value})
    assert str(caught.value).startswith(f"{variable}=")
    assert "accepted:" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_token_that_is_refused_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        read(ADMIN_TOKEN="hush\udcff")
    assert str(caught.value) == "ADMIN_TOKEN='***' is not acceptable; accepted: printable characters in UTF-8"


def test_a_gateways_name_is_as_long_as_an_ingest_takes_it() -> None:
    assert read(EDGE_ID="Gerät 7" + "x" * 248).edge_id.startswith("Gerät 7x")


def test_the_forwarder_has_the_documented_defaults() -> None:
    settings = read(INSTANCE_ID="gateway-7")
    assert (settings.host, settings.port, settings.metrics_port) == ("127.0.0.1", 8080, 9090)
    assert (settings.sync_forwarder_mode, settings.sync_interval_seconds) == ("send", 60.0)
    assert (settings.cloud.auth_mode, settings.cloud.compression, settings.cloud.url) == ("none", "gzip", "")
    assert settings.edge_id == "gateway-7"
    assert not settings.internal_admin_enabled


@pytest.mark.parametrize(("mode", "variable"), [("api_key", "CLOUD_API_KEY"), ("hmac", "CLOUD_HMAC_SECRET")])
def test_a_way_of_authentication_needs_its_secret(mode: str, variable: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        read(CLOUD_AUTH_MODE=mode)


def test_a_clients_key_needs_its_certificate(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.touch()
    with pytest.raises(SettingsError, match="CLOUD_CLIENT_CERT"):
        read(CLOUD_CLIENT_KEY=str(key))


def test_secrets_do_not_show_when_settings_are_printed() -> None:
    settings = read(CLOUD_AUTH_MODE="hmac", CLOUD_HMAC_SECRET="hush-1", CLOUD_API_KEY="hush-2", ADMIN_TOKEN="hush-3")
    assert "hush" not in repr(settings)
    assert settings.cloud.hmac_secret == "hush-1"


@pytest.mark.parametrize(("text", "meant"), [("true", True), ("1", True), ("Yes", True), ("false", False), ("", False)])
def test_a_switch_understands_the_usual_words(text: str, meant: bool) -> None:
    assert read(INTERNAL_ADMIN_ENABLED=text).internal_admin_enabled is meant


def test_the_region_of_phone_numbers_is_two_letters() -> None:
    assert read_settings({"CONTACTS_DEFAULT_REGION": " gb "}, NOWHERE).contacts_default_region == "GB"
    with pytest.raises(SettingsError, match="CONTACTS_DEFAULT_REGION='ENGLAND' is not acceptable"):
        read_settings({"CONTACTS_DEFAULT_REGION": "England"}, NOWHERE)


@pytest.mark.parametrize("text", ["gate..7", "gate 7", "x" * 64, "a\nb"])
def test_a_host_that_can_be_none_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^HOST="):
        read(HOST=text)


@pytest.mark.parametrize("text", ["0.0.0.0", "::1", "localhost", "gerät.example"])
def test_a_host_is_an_address_or_a_name(text: str) -> None:
    assert read(HOST=f" {text} ").host == text


def test_the_servers_of_kafka_have_two_names() -> None:
    assert read(KAFKA_BROKER=" a:9092 ").kafka.bootstrap_servers == "a:9092"
    assert read(KAFKA_BROKER="a:9092", KAFKA_BOOTSTRAP_SERVERS="a:9092").kafka.bootstrap_servers == "a:9092"


def test_two_different_servers_of_kafka_are_refused_with_both_names() -> None:
    with pytest.raises(SettingsError, match=r"^KAFKA_BROKER='a:9092' .*KAFKA_BOOTSTRAP_SERVERS='b:9092'"):
        read(KAFKA_BROKER="a:9092", KAFKA_BOOTSTRAP_SERVERS="b:9092")


def test_servers_of_kafka_that_are_only_spaces_are_none() -> None:
    assert read(KAFKA_BOOTSTRAP_SERVERS="  ").kafka.bootstrap_servers == ""


@pytest.mark.parametrize("text", ["999", "1000000001", "2MB"])
def test_a_largest_message_that_kafka_cannot_have_is_refused_with_the_range(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^KAFKA_MESSAGE_MAX_BYTES=.* from 1000 to 1000000000$"):
        read(KAFKA_MESSAGE_MAX_BYTES=text)


SASL = {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_USERNAME": "outbox", "KAFKA_SASL_PASSWORD": "hush"}


def test_a_way_into_kafka_is_read() -> None:
    kafka = read(**SASL, KAFKA_SASL_MECHANISM="PLAIN").kafka
    assert (kafka.security_protocol, kafka.sasl_mechanism) == ("SASL_SSL", "PLAIN")
    assert (kafka.sasl_username, kafka.sasl_password) == ("outbox", "hush")
    assert "hush" not in repr(kafka)


@pytest.mark.parametrize(
    ("changed", "variable"),
    [
        ({"KAFKA_SECURITY_PROTOCOL": "TLS"}, "KAFKA_SECURITY_PROTOCOL='TLS'"),
        ({"KAFKA_SASL_MECHANISM": "GSSAPI"}, "KAFKA_SASL_MECHANISM='GSSAPI'"),
        ({"KAFKA_SASL_USERNAME": ""}, "KAFKA_SASL_USERNAME=''"),
        ({"KAFKA_SASL_PASSWORD": ""}, "KAFKA_SASL_PASSWORD=''"),
        ({"KAFKA_SECURITY_PROTOCOL": "SSL"}, "KAFKA_SECURITY_PROTOCOL='SSL'"),
        ({"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "KAFKA_CA_FILE": __file__}, "because KAFKA_CA_FILE is set"),
        ({"KAFKA_CA_FILE": "/no/such/file"}, "KAFKA_CA_FILE='/no/such/file'"),
    ],
)
def test_what_does_not_fit_together_for_kafka_is_refused(changed: dict[str, str], variable: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(variable)) as caught:
        read(**{**SASL, **changed})
    assert "hush" not in str(caught.value)


def test_services_on_one_machine_do_not_take_each_other_s_ports() -> None:
    forward, ingest = (read_settings({}, NOWHERE, service=service) for service in ("forward", "ingest"))
    assert len({forward.port, forward.metrics_port, ingest.port, ingest.metrics_port}) == 4
    assert read_settings({"PORT": "1", "METRICS_PORT": "2"}, NOWHERE, service="ingest").port == 1


def test_a_relay_channel_that_is_set_to_nothing_is_none() -> None:
    assert read().ingest.relay_channel == "events"
    assert read(INGEST_RELAY_CHANNEL="").ingest.relay_channel == ""


@pytest.mark.parametrize(
    ("value", "items"),
    [("", ()), ("a", ("a",)), ("a,b", ("a", "b")), (" a , b ", ("a", "b")), (",,a,", ("a",)), (" , ", ())],
)
def test_a_list_with_commas_has_no_empty_items(value: str, items: tuple[str, ...]) -> None:
    assert listed(value) == items


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("INGEST_RETENTION_DAYS", "0.5"),
        ("INGEST_MAX_IN_FLIGHT", "0"),
        ("INGEST_BODY_SECONDS", "0"),
        ("INGEST_BODY_SECONDS", "nan"),
    ],
)
def test_a_bound_of_the_ingest_is_checked(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        read(**{variable: value})


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost:6379/3",
        "redis://:pa55@h:1/0?ssl_cert_reqs=none",
        "rediss://user:pa55@h",
        "redis://[::1]:6379",
        "unix:///run/redis.sock?db=1&password=pa55",
    ],
)
def test_a_redis_is_named_by_its_url(url: str) -> None:
    settings = read(REDIS_URL=url, REDIS_KEY_PREFIX="shop:")
    assert (settings.redis_url, settings.redis_key_prefix) == (url, "shop:")
    assert "pa55" not in repr(settings)


def test_without_a_redis_url_there_is_no_redis() -> None:
    assert (read().redis_url, read().redis_key_prefix) == ("", "")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "http://localhost",
        "redis://",
        "redis:///0",
        "redis://:pa55@",
        "redis://u:pa55@h:port",
        "redis://u:pa55@h:99999",
        "redis://u:pa55@h:0",
        "redis://u:pa55@h/name",
        "redis://u:pa55@[h",
        "redis://u:pa55@h /0",
        "unix://",
        "unix:///",
        "unix:///run/redis.sock?db=x&password=pa55",
        "redis://u:pa55@h?decode_responses=true",
        "redis://u:pa55@h?socket_timeout=100",
    ],
)
def test_a_wrong_redis_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="REDIS_URL=.*accepted: redis://HOST") as caught:
        read(REDIS_URL=url)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize("prefix", ["a\nb", "a\x00", "p" * 101])
def test_a_wrong_key_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(SettingsError, match="REDIS_KEY_PREFIX="):
        read(REDIS_KEY_PREFIX=prefix)
