"""What answers of every service are protected by: headers, and the policy of a page."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from aiohttp import web

CSP = "Content-Security-Policy"
HSTS_SECONDS = 365 * 86_400
NOTHING_ELSE = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb", "browsing-topics")
"""What no page of ours ever asks a browser for."""

HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in NOTHING_ELSE),
    CSP: "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
"""On every answer that does not say otherwise."""


class PagePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a page may load and where its forms may lead. Scripts, connections and workers are for the apps.

    Chromium applies `form_action` to redirects too: a form whose answer leads to OSM needs OSM's origin in it.
    """

    script: str = "'none'"
    connect: str = "'none'"
    worker: str = "'none'"
    manifest: str = "'none'"
    form_action: tuple[str, ...] = ("'self'",)

    @property
    def header(self) -> str:
        """As the value of Content-Security-Policy."""
        return "; ".join(
            (
                "default-src 'none'",
                f"script-src {self.script}",
                "style-src 'self'",
                "img-src 'self' data:",
                f"connect-src {self.connect}",
                f"worker-src {self.worker}",
                f"manifest-src {self.manifest}",
                f"form-action {' '.join(self.form_action)}",
                "frame-ancestors 'none'",
                "base-uri 'none'",
            )
        )


def secure(app: web.Application, *, is_https: bool) -> None:
    """Put the headers on every answer of the application, refusals and errors included."""
    headers = dict(HEADERS)
    if is_https:
        headers["Strict-Transport-Security"] = f"max-age={HSTS_SECONDS}"

    async def add(_: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = "carrick"
        for name, value in headers.items():
            response.headers.setdefault(name, value)

    app.on_response_prepare.append(add)
