"""Where the sink connects to: addresses, proxies and certificates."""

from __future__ import annotations

import ssl
from pathlib import Path

import msgspec
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from yarl import URL

from carrick.errors import SettingsError
from carrick.settings import CloudSettings
from carrick.sinks.connecting import destination_of, proxy_of, tls_context

CLOUD = URL("https://cloud.example/batch")


@pytest.mark.parametrize("url", ["", "cloud.example", "ftp://cloud.example/", "https://", "http://[::1", "http://x:0"])
def test_an_address_that_cannot_be_used_is_a_settings_error(url: str) -> None:
    with pytest.raises(SettingsError, match="CLOUD_INGESTION_URL="):
        destination_of(CloudSettings(url=url))


def test_an_address_in_an_error_shows_no_password() -> None:
    with pytest.raises(SettingsError) as error:
        destination_of(CloudSettings(url="ftp://me:s3cret@cloud.example/"))
    assert "s3cret" not in str(error.value)


def test_without_a_proxy_the_connection_is_direct() -> None:
    assert proxy_of(CloudSettings(), CLOUD) is None


def test_the_proxy_of_the_settings_wins_over_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://env.example:3128")
    monkeypatch.setenv("NO_PROXY", "*")
    assert proxy_of(CloudSettings(proxy="http://set.example:8080"), CLOUD) == URL("http://set.example:8080")


@pytest.mark.parametrize(
    ("variable", "value", "proxy"),
    [
        ("HTTPS_PROXY", "http://p.example:3128", "http://p.example:3128"),
        ("https_proxy", "http://p.example:3128", "http://p.example:3128"),
        ("HTTPS_PROXY", "p.example:3128", "http://p.example:3128"),
        ("ALL_PROXY", "https://p.example", "https://p.example"),
        ("HTTP_PROXY", "http://p.example:3128", None),
        ("HTTPS_PROXY", "", None),
    ],
)
def test_the_proxy_of_the_environment_is_that_of_the_scheme(
    variable: str, value: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert proxy_of(CloudSettings(), CLOUD) == (proxy and URL(proxy))


@pytest.mark.parametrize("hosts", ["cloud.example", ".example", "other, cloud.example:443", "*"])
def test_a_host_of_no_proxy_is_reached_directly(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://p.example:3128")
    monkeypatch.setenv("NO_PROXY", hosts)
    assert proxy_of(CloudSettings(), CLOUD) is None


def test_a_proxy_of_another_kind_is_a_settings_error_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:s3cret@p.example:1080")
    with pytest.raises(SettingsError, match="HTTPS_PROXY=") as error:
        proxy_of(CloudSettings(), CLOUD)
    assert "s3cret" not in str(error.value)


def test_the_system_is_trusted_unless_there_is_a_ca_file(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(file)
    assert tls_context(CloudSettings()).verify_mode is ssl.CERT_REQUIRED
    assert [len(tls_context(CloudSettings(ca_file=str(file))).get_ca_certs())] == [1]


@pytest.mark.parametrize("field", ["ca_file", "client_cert"])
def test_a_file_without_certificates_is_a_settings_error(field: str, tmp_path: Path) -> None:
    file = tmp_path / "nonsense.pem"
    file.write_text("nonsense")
    settings = msgspec.structs.replace(CloudSettings(), **{field: str(file)})
    with pytest.raises(SettingsError, match=f"CLOUD_{field.upper()}="):
        tls_context(settings)


def test_a_client_key_with_a_password_is_refused(tmp_path: Path) -> None:
    cert = trustme.CA().issue_cert("device.example")
    key = serialization.load_pem_private_key(cert.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    cert.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    (tmp_path / "key.pem").write_bytes(locked)
    with pytest.raises(SettingsError, match="without a password"):
        tls_context(CloudSettings(client_cert=str(tmp_path / "cert.pem"), client_key=str(tmp_path / "key.pem")))
