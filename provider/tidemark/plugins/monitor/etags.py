"""Weak ETags of the routes that are read. A reader who has the answer gets 304 and the times of it, and no body.

Two answers are the same if they differ by the clock alone. Ages that grow with it are therefore compared by the moment
at which they began. Points of a history are figures of their own time, and do not grow. The header `Tidemark-Times` has
the times that an answer begins with, also in a 304.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidemark.plugins.monitor.asking import API

__all__ = ["TIMES", "ETags", "documented", "etag_of"]

TIMES = "Tidemark-Times"
_CLOCKS = ("now", "looked_at")  # at the top of an answer
_HOUR = 3600.0
_GROWING = ("lag_seconds", "hours_left")
_STILL = "points"
_OF_A_BODY = ("content-length", "content-type")


class ETags:
    """Adds them to each answer of a GET route with status 200. The route is asked all the same, with all its checks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] != "GET" or f"{API}/" not in scope["path"]:
            await self._app(scope, receive, send)
            return
        known = Headers(scope=scope).get("if-none-match", "")
        begun: list[Message] = []
        parts: list[bytes] = []

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.append(message)
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                start, body = _answer(begun[0], b"".join(parts), known)
                await send(start)
                await send({"type": "http.response.body", "body": body})

        await self._app(scope, receive, tagged)


def etag_of(answer: Any) -> str:
    """The weak ETag of an answer as JSON has it."""
    now = _moment(answer.get("now")) if isinstance(answer, Mapping) else None
    if now is None:
        return _tag(answer)
    return _tag({name: _fixed(name, value, now) for name, value in answer.items() if name not in _CLOCKS})


def documented(schema: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document with the header and the answer 304 of each GET route."""
    header = {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "The ETag of an answer that the caller has.",
        "schema": {"type": "string", "maxLength": 4000},
    }
    for path in schema.get("paths", {}).values():
        route = path.get("get")
        if route is not None and "304" not in route["responses"]:
            route["responses"]["304"] = {"description": "The caller has this answer; only its times have changed"}
            route["parameters"] = [*route.get("parameters", ()), header]
    return schema


def _answer(start: Message, body: bytes, known: str) -> tuple[Message, bytes]:
    headers = MutableHeaders(raw=list(start["headers"]))
    if start["status"] != 200 or not headers.get("content-type", "").startswith("application/json"):
        return start, body
    answer = json.loads(body)
    tag = etag_of(answer)
    headers["ETag"] = tag
    if isinstance(answer, Mapping):
        headers[TIMES] = json.dumps({name: answer[name] for name in _CLOCKS if name in answer})
    if not _has(known, tag):
        return {**start, "headers": headers.raw}, body
    for name in _OF_A_BODY:
        del headers[name]
    return {**start, "status": 304, "headers": headers.raw}, b""


def _has(known: str, tag: str) -> bool:
    """Whether one of the tags of an If-None-Match is this one. A GET compares weak and strong ones in the same way."""
    tags = {one.strip().removeprefix("W/") for one in known.split(",")}
    return "*" in tags or tag.removeprefix("W/") in tags


def _tag(answer: Any) -> str:
    text = json.dumps(answer, sort_keys=True, separators=(",", ":"))
    return f'W/"{sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


def _fixed(name: str, value: Any, now: datetime) -> Any:
    """An age that the clock alone makes older, as the moment at which it began; a rest likewise, as its end. Texts are
    most of an answer, so they are handed back first.
    """
    kind = type(value)
    if kind is dict:
        return {inner: _fixed(inner, one, now) for inner, one in value.items()} if name != _STILL else value
    if kind is list:
        return [_fixed("", one, now) for one in value] if name != _STILL else value
    if name not in _GROWING or kind not in (int, float) or value <= 0:
        return value
    if name == "lag_seconds":
        return _whole(now - timedelta(seconds=value))
    return _whole(now + timedelta(seconds=value * _HOUR))


def _whole(moment: datetime) -> str:
    return (moment + timedelta(seconds=0.5)).replace(microsecond=0).isoformat()


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
