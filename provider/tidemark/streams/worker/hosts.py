"""The host of this process, which knows the jobs that were started on it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["UNKNOWN_HOST", "Host"]


class Host(Protocol):
    """A host that starts jobs."""

    @property
    def name(self) -> str | None:
        """The name that no other host has, in words; None if the processes of jobs cannot be found."""

    def end(self, job_id: str) -> bool:
        """Whether a job that was to be started here can write no more. A driver without its worker is ended first.

        False if its worker is alive, if the driver does not end, or if nobody knows. A job that has not begun never
        does after True. A second call is harmless.
        """


class _UnknownHost:
    """A process whose jobs leave no trace outside of it, as a notebook's."""

    @property
    def name(self) -> str | None:
        return None

    def end(self, job_id: str) -> bool:
        return False


UNKNOWN_HOST: Host = _UnknownHost()
