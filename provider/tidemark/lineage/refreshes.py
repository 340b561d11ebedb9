"""Inputs and outputs of a task that refreshes views, from the transactions of its refreshes."""

from __future__ import annotations

from typing import Any

from airflow.providers.openlineage.extractors import OperatorLineage

from tidemark.control.store import ControlStore
from tidemark.lineage.facets import Tables, lineage_of_transaction
from tidemark.materialized.worker.refresh import transaction_keys
from tidemark.model.statements import TransactionKey

__all__ = ["lineage_of_refreshes"]


def lineage_of_refreshes(
    store: ControlStore, run: str, key: TransactionKey, tables: Tables
) -> OperatorLineage[Any, Any] | None:
    """The bases of the refreshed views with their versions, and the kept tables; None if nothing was refreshed."""
    keys = transaction_keys(store, run, key)
    found = [one for one in (lineage_of_transaction(store, each, slice(None), tables) for each in keys) if one]
    if not found:
        return None
    return OperatorLineage(
        inputs=[dataset for one in found for dataset in one.inputs],
        outputs=[dataset for one in found for dataset in one.outputs],
    )
