"""The columns of an event log whose source is a PostgreSQL."""

from __future__ import annotations

from tidemark.model.source_address import SourceKind
from tidemark.replication.driver.event_log import event_columns, event_ddl
from tidemark.replication.driver.log_forms import form_of_kind

__all__ = ["EVENT_COLUMNS", "EVENT_DDL"]

EVENT_COLUMNS = event_columns(form_of_kind(SourceKind.POSTGRESQL))
EVENT_DDL = event_ddl(form_of_kind(SourceKind.POSTGRESQL))
