"""The edge of the service's HTTP: bodies that are bounded on each route, and requests of another form."""

from __future__ import annotations

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidemark.channels.planning.values.problem import cut
from tidemark.errors import BodyTooLarge, InvalidArgument

__all__ = ["BodyOverLimit", "BoundedBodies", "misfit_of"]

_SHOWN_NAME = 100


class BodyOverLimit(HTTPException):
    """BodyTooLarge while a route reads its body: FastAPI passes on this kind of error alone."""

    def __init__(self, limit: int) -> None:
        self.error = BodyTooLarge(limit=limit)
        super().__init__(413, str(self.error))


class BoundedBodies:
    """Lets no route read more than `limit` bytes of a body. FastAPI reads a body before a route asks for a token."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_over = int(Headers(scope=scope).get("content-length") or 0) > self._limit
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message: Message = {} if is_over else await receive()
            taken += len(message.get("body", b""))
            if is_over or taken > self._limit:
                raise BodyOverLimit(self._limit)
            return message

        await self._app(scope, bounded, send)


def misfit_of(error: RequestValidationError) -> InvalidArgument:
    """The first field of a request that does not fit. Values are shortened: they may be as long as the body."""
    first = error.errors()[0]
    name = ".".join(cut(str(step), _SHOWN_NAME) for step in first["loc"])
    problem = cut(str(first["msg"]), _SHOWN_NAME)
    return InvalidArgument(argument=name, value=cut(ascii(first.get("input"))), problem=problem)
