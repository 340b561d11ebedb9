"""A table that autovacuum is at is published all the same: it ends for whoever waits long enough."""

from __future__ import annotations

from datetime import timedelta

from tests.postgresql import LOGICAL, postgresql_or_skip
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.publication import PublishedTable, ensure_publication, publication_state

SLOW = ("autovacuum_vacuum_cost_limit=1", "autovacuum_vacuum_cost_delay=100ms")
ALWAYS = ("autovacuum=on", "autovacuum_naptime=1s", *SLOW)


def test_autovacuum_does_not_keep_a_table_from_being_published() -> None:
    with postgresql_or_skip((*LOGICAL, *ALWAYS)) as server:
        database = server.new_database()
        for text in (
            "CREATE TABLE t (id int PRIMARY KEY, v text)",
            "ALTER TABLE t SET (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0)",
            "INSERT INTO t SELECT g, repeat('v', 500) FROM generate_series(1, 20000) g",
            "DELETE FROM t WHERE id % 2 = 0",
        ):
            server.sql(text, database)
        asked = "SELECT count(*) FROM pg_stat_progress_vacuum WHERE relid = 't'::regclass"
        while server.sql(asked, database) == [(0,)]:
            pass
        ((oid,),) = server.sql("SELECT 't'::regclass::oid::bigint", database)
        with connect(server.address(database)) as connection:
            assert ensure_publication(connection, "p", [PublishedTable(int(str(oid)))], patience=timedelta(minutes=1))
            assert len(publication_state(connection, "p").tables) == 1
