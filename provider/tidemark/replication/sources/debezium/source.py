"""Landed envelopes as the source of a replication."""

from __future__ import annotations

from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import FoundObject, Selection
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.planning.debezium_rows import RowRules, Unavailable
from tidemark.replication.sources.debezium.inputs import EnvelopeInput
from tidemark.replication.sources.debezium.opening import open_input
from tidemark.replication.sources.debezium.seen import KEY_UNKNOWN, tables_in
from tidemark.replication.sources.debezium.settings import settings_of
from tidemark.replication.sources.landed import LandedSource

__all__ = ["DebeziumSource"]


class DebeziumSource(LandedSource):
    """The `Source` of landed envelopes."""

    what = "landed envelopes"
    key_unknown = unsupported = KEY_UNKNOWN

    def __init__(self, address: SourceAddress) -> None:
        self._settings = settings_of(address)
        self._input = open_input(self._settings)
        super().__init__(self._settings.location, self._settings.begin, self._input.place)

    def system_id(self) -> str:
        """Which place it is."""
        return self._input.identity()

    def _landed(self) -> EnvelopeInput:
        return self._input

    def _tables(
        self, start: Lanes, numeric_as: str | None, selection: Selection | None = None
    ) -> tuple[FoundObject, ...]:
        rules = RowRules(numeric_as, None, Unavailable(self._settings.unavailable))
        return tables_in(self._input, start, self._input.ends(), self._settings.key_of, rules, selection)
