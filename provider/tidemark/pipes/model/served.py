"""Pipes as the ingest service knows them: by a file, since it knows no control store."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ServedPipe", "ServedPipes"]


@dataclass(frozen=True)
class ServedPipe:
    """A pipe that takes files over HTTP. `queue`: path of its table of files. `location`, `prefix`, `pattern`: of the
    files that it means, as in `Load`. `state`, `problem`: why its statement cannot be understood now, so that it takes
    no files; None: it can.
    """

    name: str
    uid: str
    queue: str
    location: str = ""
    prefix: str = ""
    pattern: str | None = None
    state: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class ServedPipes:
    """All pipes of a lake that are not dropped."""

    pipes: tuple[ServedPipe, ...] = ()
