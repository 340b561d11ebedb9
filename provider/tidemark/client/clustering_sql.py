"""Statements of clustering in `lake.sql`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidemark.client.sql_answers import status_answer
from tidemark.clustering.model.tables import Reclustered, ReclusterState
from tidemark.clustering.planning import statements as said
from tidemark.clustering.planning.keys import in_words
from tidemark.clustering.planning.sql import DEPTH, parse_clustering_sql
from tidemark.sql.names import sql_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.clustering import ClusteringOfALake
    from tidemark.client.context import ClientContext

__all__ = ["run_clustering_sql"]

_DONE = "Statement executed successfully."


def run_clustering_sql(lake: ClusteringOfALake, context: ClientContext, text: str) -> DataFrame | None:
    """The answer to a statement of clustering; None for any other. Raises what `Lake.sql` says."""
    statement = parse_clustering_sql(text)
    if statement is None:
        return None
    table = sql_name(statement.table)
    match statement:
        case said.ClusteringCall():
            return _called(lake, context, statement, table)
        case said.ClusterBy():
            kept = lake.cluster_by(table, statement.columns)
            return status_answer(context.spark, f"{_DONE} {kept.name} is kept clustered by {in_words(kept.key)}.")
        case said.DropKey():
            lake.drop_clustering_key(table)
        case said.SuspendRecluster():
            lake.suspend_recluster(table)
        case said.ResumeRecluster():
            lake.resume_recluster(table)
        case said.ReclusterNow():
            done = lake.recluster(table, max_size=statement.max_size, where=statement.where)
            return status_answer(context.spark, _in_words(done))
    return status_answer(context.spark, _DONE)


def _called(lake: ClusteringOfALake, context: ClientContext, call: said.ClusteringCall, table: str) -> DataFrame:
    errors = 10 if call.errors is None else call.errors
    found = lake.clustering_information(table, call.columns or None, errors=errors)
    title = call.title.replace("`", "``")
    if call.function == DEPTH:
        return context.spark.createDataFrame([(found["average_depth"],)], f"`{title}` DOUBLE")
    return context.spark.createDataFrame([(json.dumps(found, indent=2),)], f"`{title}` STRING")


def _in_words(done: Reclustered) -> str:
    if done.state is ReclusterState.LEFT:
        return f"{done.table} was not reclustered: {done.why}."
    if done.version is None:
        return f"Nothing to recluster: {done.why}."
    return (
        f"{done.table} reclustered: {done.bytes} bytes rewritten in {done.seconds:.1f} s, average depth"
        f" {done.depth_before:g} before and {done.depth_after:g} after, version {done.version}."
    )
