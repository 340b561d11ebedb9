"""Pages of an HTTP API with a cursor. A token is the cursor of the page that has the last row, and its place there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx
import tenacity

from tidemark.channels.driver.json_rows import JsonLines
from tidemark.channels.planning.values.json_text import json_text
from tidemark.channels.planning.values.problem import ValueProblem
from tidemark.errors import InvalidArgument, SourceUnreadable
from tidemark.model.foreign_json import exact_number, parsed
from tidemark.model.source_connection import SourceConnection

__all__ = ["http_pages"]

_TRIES = 5
_LONGEST_WAIT = 60.0  # seconds, even if Retry-After asks for more
_MISSING: Any = object()
_SECRETS = re.compile(r"(?<=//)[^/?#]*@|[?#].*", re.S)


@dataclass(frozen=True)
class _Place:
    """`cursor`: of a page; None for the first. `rows`: how many of its rows were read."""

    cursor: str | None
    rows: int = 0

    def token(self) -> str:
        return json.dumps({"cursor": self.cursor, "rows": self.rows})


def http_pages(
    after_token: str | None,
    *,
    connection: SourceConnection | None = None,
    url: str,
    next_cursor: str,
    rows: str = "",
    cursor_parameter: str = "cursor",
    parameters: Mapping[str, Any] | None = None,
    initial: str | None = None,
    timeout_seconds: float = 60,
) -> Iterator[tuple[Any, str]]:
    """(rows, token) of the rows behind a token, a page at a time, until a page has no next one.

    `url`: whole, or a path below the connection's host; errors show it without its query. `rows`, `next_cursor`: the
    paths of the rows and of the next page's cursor in a page, as names with dots between them. Without `rows` the page
    is a list of them. `initial`: the first cursor. A page without a next cursor (none, null, "" or false) may grow:
    its later rows come with the next call. Pages must not change otherwise. A row that is no object is a
    row error.

    Busy answers (429, 5xx) and broken connections are tried five times. Raises SourceUnreadable for other answers, and
    for cursors that go round in a circle. Raises InvalidArgument for a token that is none.
    """
    place = _Place(initial) if after_token is None else _place_of(after_token)
    seen = {place.cursor}
    with _Api(connection, url, float(timeout_seconds)) as api:
        while True:
            cursor = {} if place.cursor is None else {cursor_parameter: place.cursor}
            page = api.page({**(parameters or {}), **cursor})
            found = _part(page, rows)
            following = api.cursor_of(_part(page, next_cursor))
            if not isinstance(found, list) or len(found) < place.rows:
                raise api.unreadable(
                    f"the page at cursor {place.cursor!r} has no list of rows {rows!r}, or a shorter one."
                )
            has_next = following not in (None, place.cursor)
            if has_next and following in seen:
                raise api.unreadable(f"the page at cursor {place.cursor!r} leads back to {following!r}.")
            after = _Place(following) if has_next else _Place(place.cursor, len(found))
            if after != place:
                yield api.rows_of(found[place.rows :], place), after.token()
            if not has_next:
                return
            place = after
            seen.add(place.cursor)


class _Api:
    """The pages of one API, with the connection's login and headers."""

    def __init__(self, connection: SourceConnection | None, url: str, seconds: float) -> None:
        self._url = _whole_url(connection, url)
        login = (
            None if connection is None or connection.login is None else (connection.login, connection.password or "")
        )
        headers = {} if connection is None else {name: str(value) for name, value in connection.extra.items()}
        self._client = httpx.Client(auth=login, headers=headers, timeout=seconds)

    def __enter__(self) -> _Api:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def page(self, parameters: Mapping[str, Any]) -> Any:
        """The body of a page. Numbers keep each digit."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type((httpx.TransportError, _Busy)),
            wait=_wait,
            stop=tenacity.stop_after_attempt(_TRIES),
            reraise=True,
        )
        try:
            return retrying(self._page, parameters)
        except (httpx.HTTPError, httpx.InvalidURL, _Refused, ValueError) as error:
            raise self.unreadable(f"{error}." if str(error) else f"{type(error).__name__}.") from error

    def cursor_of(self, following: Any) -> str | None:
        """The cursor of the next page; None if there is none. Raises SourceUnreadable for a list or an object."""
        if following in (None, "", _MISSING) or following is False:
            return None
        if isinstance(following, str | int | Decimal) and following is not True:
            return str(following)
        kind = type(following).__name__
        raise self.unreadable(f"the next cursor of a page is of type {kind}, and must be a text or a number.")

    def rows_of(self, found: list[Any], place: _Place) -> Any:
        """The rows as a channel takes them: as lines of JSON with places if an element is no object."""
        if all(isinstance(row, dict) for row in found):
            return found
        try:
            lines = [f"{json_text(row)}\n".encode(errors="surrogatepass") for row in found]
        except (ValueProblem, RecursionError) as problem:
            raise self.unreadable(f"the page at cursor {place.cursor!r} has a row without a form: {problem}.") from None
        return JsonLines(lines, lambda index: f"element {place.rows + index} of the page at cursor {place.cursor!r}")

    def unreadable(self, problem: str) -> SourceUnreadable:
        """The error of this API."""
        return SourceUnreadable(source=_SECRETS.sub("", self._url), problem=problem)

    def _page(self, parameters: Mapping[str, Any]) -> Any:
        answer = self._client.get(httpx.URL(self._url).copy_merge_params(dict(parameters)))
        if answer.status_code == 429 or answer.status_code >= 500:
            raise _Busy(answer.status_code, answer.headers.get("retry-after"))
        if not answer.is_success:  # the words of httpx have the whole URL
            raise _Refused(f"it answers {answer.status_code} {answer.reason_phrase}".rstrip())
        return parsed(answer.content, fraction=exact_number)


class _Refused(Exception):
    """An answer without a page."""


class _Busy(_Refused):
    """The status of an answer that may be another one in a moment."""

    def __init__(self, status: int, after: str | None) -> None:
        super().__init__(f"it answers {status} after {_TRIES} tries")
        self.seconds = float(after) if after is not None and after.isdecimal() else None


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.seconds if isinstance(error, _Busy) else None
    return min(_LONGEST_WAIT, asked if asked is not None else 2.0 ** (state.attempt_number - 1))


def _whole_url(connection: SourceConnection | None, url: str) -> str:
    if "://" in url or connection is None:
        return url
    host = connection.host or ""
    base = host if "://" in host else f"{connection.schema or 'http'}://{host}"
    port = f":{connection.port}" if connection.port else ""
    return f"{base.rstrip('/')}{port}/{url.lstrip('/')}"


def _part(page: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        page = page.get(name, _MISSING) if isinstance(page, Mapping) else _MISSING
    return page


def _place_of(token: str) -> _Place:
    """The place of a token. A token that was set by hand may be the cursor alone."""
    try:
        found = parsed(token)
    except ValueError:
        return _Place(token)
    if not isinstance(found, dict):
        return _Place(token)
    is_place = found.keys() == {"cursor", "rows"} and type(found["rows"]) is int and found["rows"] >= 0
    if not is_place or not isinstance(found["cursor"], str | None):
        problem = 'it must be a cursor, or {"cursor": …, "rows": …}'
        raise InvalidArgument(argument="offset_token", value=token, problem=problem)
    return _Place(found["cursor"], found["rows"])
