"""The state of a table after actions of its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tidemark.errors import CorruptLog
from tidemark.lake import actions
from tidemark.model.table_log import Metadata, Protocol, TableState

__all__ = ["StateFold", "corrupt_if_garbled"]


class StateFold:
    """The state after actions in the order of their versions. The last of each kind counts."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._metadata: Metadata | None = None
        self._protocol: Protocol | None = None
        self._mark: int | None = None
        self._transactions: dict[str, int] = {}
        self._domains: dict[str, str | None] = {}

    def take(self, state_actions: Iterable[tuple[str, dict[str, Any]]], file: str) -> None:
        """Add actions of the next version. Raises CorruptLog."""
        with corrupt_if_garbled(file):
            for kind, body in state_actions:
                if kind == "metaData":
                    self._metadata = actions.metadata(body)
                elif kind == "protocol":
                    self._protocol = actions.protocol(body)
                elif kind == "txn":
                    self._transactions.update([actions.transaction(body)])
                else:
                    self._take_domain(body)

    def _take_domain(self, body: Mapping[str, Any]) -> None:
        name, value = actions.domain(body)
        self._domains[name] = value
        if (mark := actions.row_id_mark(body)) is not None:
            self._mark = mark

    def state(self, version: int) -> TableState:
        """The state of that version, after the actions so far. Raises CorruptLog."""
        if self._metadata is None or self._protocol is None:
            raise CorruptLog(file=self._uri, problem=f"no metaData or no protocol up to version {version}")
        domains = {name: value for name, value in self._domains.items() if value is not None}
        return TableState(version, self._metadata, self._protocol, self._mark, self._transactions, domains)


@contextmanager
def corrupt_if_garbled(file: str) -> Iterator[None]:
    """A ValueError of an action is a CorruptLog of its file."""
    try:
        yield
    except ValueError as error:
        raise CorruptLog(file=file, problem=f"an action is garbled: {error}") from error
