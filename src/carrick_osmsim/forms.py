"""The fields of a form that was sent."""

from __future__ import annotations

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError


async def fields_of(request: web.Request) -> dict[str, str]:
    """Text fields only; empty for a body that is no form. Raises ValueError for a form that cannot be read."""
    try:
        fields = await request.post()
    except (HttpProcessingError, LookupError, ValueError) as error:
        raise ValueError(f"the body is no form ({error})") from None
    return {name: value for name, value in fields.items() if isinstance(value, str)}
