"""Views of ours that a writing task reads: the kept rows of dynamic tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument
from tidemark.model.statements import WriteAs
from tidemark.operators._plans import WriteRequest, parsed_sql

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["over_views"]


def over_views(hook: TidemarkHook, request: WriteRequest) -> WriteRequest:
    """The request with the kept rows of dynamic tables in place of their names. A retry gives the same.

    Raises StatementRefused and InvalidArgument for a materialized view, and KeptViewNotReady.
    """
    from tidemark.materialized.worker.reads_of_writes import materialized_views_among, over_dynamic_tables

    if request.write_as == WriteAs.SQL:
        parsed = parsed_sql(request, request.streams)
        text = over_dynamic_tables(hook.open_store(), hook.open_table, parsed, request.streams)
        return request if text == parsed.sql else replace(request, sql=text)
    if request.tables:
        found = materialized_views_among(hook.open_store(), request.tables)
        if found:
            problem = f"a function cannot read the materialized view {found[0]}; keep a dynamic table for it"
            raise InvalidArgument(argument="tables", value=list(request.tables), problem=problem)
    return request
