"""The rights of writers: the tokens of a file, which is read again when it changes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from tidemark.channels.model.grants import Grant, Grants
from tidemark.channels.planning.grants import allows, allows_pipe, grant_for
from tidemark.errors import IngestForbidden, IngestUnauthenticated, PipeForbidden
from tidemark.model.codec import from_json

__all__ = ["Access", "PipeRights"]

_SCHEME = "bearer "


@dataclass(frozen=True)
class PipeRights:
    """The pipes that a token may use."""

    grant: Grant

    def allows(self, pipe: str) -> bool:
        """Whether the token may use the pipe."""
        return allows_pipe(self.grant, pipe)

    def require(self, pipe: str) -> None:
        """Raises PipeForbidden unless the token may use the pipe."""
        if not self.allows(pipe):
            known = ", ".join(self.grant.pipes) or "no pipe"
            raise PipeForbidden(writer=self.grant.name, pipe=pipe, pipes=known)


class Access:
    """The tokens in a file. A file that is missing or cannot be read has none, so everybody is refused."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._mark: tuple[int, int, int] | None = None
        self._grants = Grants()

    def writer(self, authorization: str | None) -> Grant:
        """The grant of a request's Authorization header. Raises IngestUnauthenticated."""
        if authorization is None or not authorization.lower().startswith(_SCHEME):
            raise IngestUnauthenticated(problem="the request has no bearer token")
        found = grant_for(self._known(), authorization[len(_SCHEME) :].strip())
        if found is None:
            raise IngestUnauthenticated(problem="the bearer token is not one of this service")
        return found

    def require(self, grant: Grant, table: str) -> None:
        """Raises IngestForbidden unless the token may write the table."""
        if not allows(grant, table):
            raise IngestForbidden(writer=grant.name, table=table, tables=", ".join(grant.tables) or "no table")

    def pipe_rights(self, authorization: str | None) -> PipeRights:
        """The rights on pipes of a request's Authorization header. Raises IngestUnauthenticated."""
        return PipeRights(self.writer(authorization))

    def _known(self) -> Grants:
        with self._lock:
            try:
                state = self._file.stat()
                mark = (state.st_ino, state.st_size, state.st_mtime_ns)
                if mark != self._mark:
                    self._grants = from_json(Grants, self._file.read_text(encoding="utf-8"))
                    self._mark = mark
            except (OSError, ValueError):
                self._grants, self._mark = Grants(), None
            return self._grants
