"""The job that tests a connection: worker and Spark read each other's files."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.jobs import Job

__all__ = ["PROBE", "ProbeReport", "ProbeRequest"]


@dataclass(frozen=True)
class ProbeRequest:
    """A request without arguments."""


@dataclass(frozen=True)
class ProbeReport:
    """Spark's version."""

    spark: str


PROBE = Job("probe", ProbeRequest, ProbeReport, "jobs.probe:probe")
