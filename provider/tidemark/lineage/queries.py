"""Inputs of a task that answers a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset
from openlineage.client.facet_v2 import sql_job

from tidemark.lineage.datasets import name_of
from tidemark.results.model.answers import Miss
from tidemark.results.planning.queries import read_query

__all__ = ["lineage_of_query"]


def lineage_of_query(sql: str, uri_of: Callable[[str], str]) -> OperatorLineage[Any, Any] | None:
    """The tables that the query reads. It writes none, since an answer is no table. None if it cannot be parsed."""
    query = read_query(sql)
    if isinstance(query, Miss):
        return None
    inputs = [InputDataset(*name_of(uri_of(name))) for name in query.names]
    return OperatorLineage(inputs=inputs, outputs=[], job_facets={"sql": sql_job.SQLJobFacet(query=query.text)})
