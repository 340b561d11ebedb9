"""The SET_KEY job: Delta clusters a table by other columns from now on."""

from __future__ import annotations

from tidemark.clustering.driver.statements import open_same
from tidemark.clustering.model.jobs import KeyRequest, KeySet
from tidemark.jobs.context import JobContext
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name

__all__ = ["set_key"]


def set_key(job: JobContext, request: KeyRequest) -> KeySet:
    """One commit that rewrites no file; a second run makes another one of the same key. Raises
    ClusteredTableRecreated, TableNotFound, AnalysisException for a column without statistics.
    """
    log = open_same(request.table, job.options)
    columns = ", ".join(".".join(map(quoted, name.split("."))) for name in request.key)
    key = f"({columns})" if columns else "NONE"
    job.session.sql(f"ALTER TABLE {path_name(log.uri)} CLUSTER BY {key}").collect()
    return KeySet(log.head())
