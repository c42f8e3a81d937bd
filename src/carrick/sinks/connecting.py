"""How the destination is reached: certificates and the proxy, from the settings or the environment."""

from __future__ import annotations

import ssl
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from carrick.settings import CloudSettings
from carrick.variables import mask_url, refused


def tls_context(cloud: CloudSettings) -> ssl.SSLContext:
    """Trusts the CA file, else the system's, and shows the client certificate. Raises SettingsError."""
    try:
        context = ssl.create_default_context(cafile=cloud.ca_file or None)
    except (OSError, ValueError):
        raise refused("CLOUD_CA_FILE", cloud.ca_file, "a file with certificates in PEM form") from None
    if cloud.client_cert:
        try:
            context.load_cert_chain(cloud.client_cert, cloud.client_key or None, password=_no_password)
        except (OSError, ValueError):
            accepted = (
                "a PEM file with the certificate, its key in it or in CLOUD_CLIENT_KEY, the key without a password"
            )
            raise refused("CLOUD_CLIENT_CERT", cloud.client_cert, accepted) from None
    return context


def destination_of(cloud: CloudSettings) -> URL:
    """Where batches go. Raises SettingsError."""
    url = _web_address(cloud.url)
    if url is None:
        raise refused("CLOUD_INGESTION_URL", mask_url(cloud.url), "http://… or https://…")
    return url


def proxy_of(cloud: CloudSettings, destination: URL) -> URL | None:
    """The proxy of the settings, else that of the environment unless NO_PROXY names the host. Raises SettingsError."""
    if cloud.proxy:
        return _proxy("CLOUD_PROXY", cloud.proxy)
    if proxy_bypass(f"{destination.host}:{destination.port}"):
        return None
    proxies = getproxies()
    for scheme in (destination.scheme, "all"):
        if address := proxies.get(scheme):
            return _proxy(f"{scheme.upper()}_PROXY", address if "://" in address else f"http://{address}")
    return None


def _proxy(variable: str, address: str) -> URL:
    proxy = _web_address(address)
    if proxy is None:
        raise refused(variable, mask_url(address), "http://… or https://…")
    return proxy


def _web_address(text: str) -> URL | None:
    try:
        url = URL(text)
    except ValueError:
        return None
    return url if url.scheme in ("http", "https") and url.host and url.port else None


def _no_password() -> bytes:
    """A key with a password is refused at once: otherwise OpenSSL would ask for it on the terminal, and wait."""
    return b""
