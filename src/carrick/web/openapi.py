"""The OpenAPI document of a service, made of its routes and their types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from carrick import __version__
from carrick.web.problems import ProblemBody
from carrick.web.routes import Route

NARROWED = re.compile(r":[^}]+}")
"""What a part of a path may be, which OpenAPI does not know."""


def document(title: str, description: str, routes: Sequence[Route]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    types = [ProblemBody, *(route.gives for route in routes), *(r.takes for r in routes if r.takes is not None)]
    schemas, components = msgspec.json.schema_components(
        types, schema_hook=_schema_of, ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(NARROWED.sub("}", route.path), {})[route.method.lower()] = _operation(route, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "description": description, "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _schema_of(kind: type) -> dict[str, Any]:
    if kind is msgspec.Raw:
        return {"description": "Any JSON value; its bytes are delivered as they are."}
    raise NotImplementedError(kind)


def _operation(route: Route, by_type: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.handle.__name__,
        "responses": {
            str(route.status): _response(route.status, by_type[repr(route.gives)]),
            **{str(status): _response(status, by_type[repr(ProblemBody)]) for status in route.refusals},
        },
    }
    if route.takes is not None:
        schema = by_type[repr(route.takes)]
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": not route.body_optional, "content": content}
    parameters = [*_in_path(route.path), *([] if route.query is None else _parameters(route.query))]
    if parameters:
        operation["parameters"] = parameters
    return operation


def _in_path(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)", path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _response(status: int, schema: Any) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": schema}}}


def _parameters(query: type) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(query)
    described = schema["$defs"][query.__name__]
    required = described.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": kind}
        for name, kind in described["properties"].items()
    ]
