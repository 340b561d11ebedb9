"""What a slot is warned of: before its log is lost, and when it is; a paused replication is no exception."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.postgresql import PostgresServer
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import START, Replication, ReplicationOptions, ReplicationState, Selection
from tidemark.replication.sources.postgresql.slots import SlotStatus, create_slot
from tidemark.replication.sources.postgresql.source import _RETAINED, _SAFE, PostgresSource, _alerts

WELL = SlotStatus("tidemark_shop", "shop", wal_status="reserved", retained_bytes=_RETAINED)


def replication(slot: str) -> Replication:
    return Replication(
        uid="u", name="shop", kind=SourceKind.POSTGRESQL, source_conn_id="c", selection=Selection(),
        options=ReplicationOptions(target="lake"), event_log="/log", slot=slot, publication="p",
        state=ReplicationState.PAUSED, created_at=datetime(2026, 1, 1, tzinfo=UTC), captured=START,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (replace(WELL, wal_status="extended", safe_wal_size=_SAFE), None),
        (replace(WELL, wal_status="unreserved"), "is unreserved"),
        (replace(WELL, wal_status="lost"), "is lost"),
        (replace(WELL, safe_wal_size=_SAFE - 1), "lost after 1,073,741,823 more bytes"),
        (replace(WELL, safe_wal_size=0), "lost after 0 more bytes"),
        (replace(WELL, retained_bytes=_RETAINED + 1), "keeps 10,737,418,241 bytes"),
        (replace(WELL, exists=False, wal_status=None, retained_bytes=0), "is gone"),
    ],
)
def test_a_slot_is_warned_of_before_its_log_is_lost(status: SlotStatus, said: str | None) -> None:
    told = _alerts(status)
    assert [said in one for one in told if said] == ([True] if said else [])
    assert len(told) == (1 if said else 0)
    assert all(status.name in one for one in told)


def test_every_danger_is_told_and_one_that_was_not_made_is_none() -> None:
    assert len(_alerts(replace(WELL, wal_status="unreserved", safe_wal_size=1, retained_bytes=_RETAINED + 1))) == 3
    assert _alerts(replace(WELL, exists=False, retained_bytes=0), made=False) == []


def test_a_server_is_asked_also_of_a_replication_that_is_paused(source_server: PostgresServer) -> None:
    address = source_server.address(source_server.new_database())
    source = PostgresSource(address)
    create_slot(address, "tidemark_alerts", patience=timedelta(seconds=20))
    try:
        assert source.alerts(replication("tidemark_alerts")) == ()
    finally:
        source_server.sql("SELECT pg_drop_replication_slot('tidemark_alerts')")
    (gone,) = source.alerts(replication("tidemark_alerts"))
    assert "tidemark_alerts is gone" in gone
