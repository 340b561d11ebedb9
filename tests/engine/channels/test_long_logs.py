"""A channel's table is read from the end of its log, and Kernel sees in it what it sees in the whole log."""

from __future__ import annotations

import pytest

from tests.engine.channels.landing import Landing
from tidemark.channels.driver.kernel import KernelEngine, KernelSnapshot
from tidemark.lake.log_tails import log_tail

pytestmark = pytest.mark.spark

TABLES: dict[str, dict[str, str]] = {
    "plain": {},
    "columns mapped by name": {"delta__columnMapping__mode": "name"},
    "in-commit timestamps": {"delta__enableInCommitTimestamps": "true"},
    "checkpoints of version 2": {"delta__checkpointPolicy": "v2"},
}


def said(snapshot: KernelSnapshot) -> tuple[object, ...]:
    domains = snapshot.domains()
    return snapshot.version, domains, snapshot.metadata(), snapshot.protocol(), snapshot.transaction_version("app")


@pytest.mark.parametrize("kind", TABLES)
def test_a_snapshot_of_the_end_of_a_log_is_kernels_own_and_takes_commits(landing: Landing, kind: str) -> None:
    landing.create(delta__checkpointInterval="2", **TABLES[kind])
    with landing.client().open_channel("c", table="orders") as channel:
        channel.insert_rows([{"id": 1, "name": "a"}], end_offset_token="1")
        channel.flush()
    for number in (2, 3):
        landing.sql(f"INSERT INTO {{t}} VALUES ({number}, 'b')")
    engine = KernelEngine.of_session(landing.spark)
    table, storage = engine.table(landing.uri("orders")), landing.log().storage
    for _ in range(2):  # with commits behind the checkpoint, and without
        tail, whole = log_tail(storage), table.latest()
        assert tail is not None
        assert said(table.latest(tail)) == said(whole)
        done = table.commit(table.latest(tail), [], {"d": "1"}, transaction=("app", whole.version))
        assert done.version == whole.version + 1
        assert done.after is not None
        assert done.after.domain("d") == "1"
        table.do_later(done.later)
    with landing.client("other").open_channel("c", table="orders") as reopened:
        assert reopened.offset_token == "1"
        reopened.insert_rows([{"id": 4, "name": "d"}], end_offset_token="4")
    assert [row[0] for row in landing.rows(columns="id")] == [1, 2, 3, 4]
