"""All objects of the control store from a notebook."""

from __future__ import annotations

from tidemark.client.context import ClientContext
from tidemark.control.object_list import ObjectsWish, ShownObject
from tidemark.streams.worker.object_states import list_objects

__all__ = ["ShownObjects"]


class ShownObjects:
    """The part of `Lake` that lists objects of every kind and subject."""

    _context: ClientContext

    def show_objects(
        self, *, kind: str | None = None, state: str | None = None, problems: bool = False
    ) -> tuple[ShownObject, ...]:
        """Every object of the control store with state, severity, lag and problem, the worst first.

        `kind`: stream, change_stream, consumer_group, replication, replicated_table, landing_table, pipe,
        materialized_view, dynamic_table or clustered_table. `state`: a state of the kind, or a severity (failed,
        warning, waiting, ok). `problems`: failed ones and those with a warning alone. Logs of streams are waited for as
        by `show_streams`; one that has not answered leaves the state that the store knows. Raises InvalidArgument.
        """
        wish = ObjectsWish(kind=kind, state=state, problems=problems)
        return list_objects(self._context.store, self._context.tables, wish)
