"""The ties of each kind in each kind of store, read as one graph."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from tests.airflow.monitored import Monitored
from tests.control.change_stream_model import ChangeStreamWorld
from tidemark.change_streams.store import group_sinks
from tidemark.change_streams.worker.groups import create_group, drop_group
from tidemark.channels.store import landing_tables
from tidemark.control.object_lineage import read_graph
from tidemark.control.store import ControlStore
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import TableRef
from tidemark.pipes.worker.definitions import create_pipe
from tidemark.streams.store import streams, ties
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.streams import drop_stream

A = "file:///lake/db/a"


def flows(store: ControlStore) -> dict[tuple[str, str], frozenset[str]]:
    """Each edge by the last parts of its names, with its DAGs."""
    found = store.read(read_graph)
    said = {key: f"{node.kind} {node.name.rpartition('/')[2]}" for key, node in found.nodes.items()}
    return {(said[edge.source], said[edge.target]): edge.dags for edge in found.edges}


def test_change_streams_lead_from_watched_tables_to_groups_and_on_to_their_sinks(world: ChangeStreamWorld) -> None:
    store = world.store
    groups = [create_group(store, "s", name, "now") for name in ("g", "gone")]
    sink = TableRef(A, A, "id-a")
    for group in groups:
        store.write(lambda c, uid=group.uid: group_sinks.keep(c, uid, sink, at=store.clock()))
    drop_group(store, "s", "gone")
    assert flows(store).keys() == {
        ("table db.t", "change_stream s"),
        ("change_stream s", "consumer_group g"),
        ("consumer_group g", "table a"),
    }


def test_channels_and_pipes_lead_to_their_tables(copied_store: ControlStore) -> None:
    table = TableRef("db.a", A, "id-a")
    copied_store.write(lambda c: landing_tables.register(c, table, by="d/r/t/-1", at=copied_store.clock()))
    create_pipe(copied_store, "p", "COPY INTO DB.A FROM @files", queue="/queue", by="ana")
    assert flows(copied_store).keys() == {("landing_table db.a", "table db.a"), ("pipe p", "table db.a")}
    copied_store.write(lambda c: landing_tables.end(c, "id-a", at=copied_store.clock()))
    assert flows(copied_store).keys() == {("pipe p", "table DB.A")}  # as the statement spells it


@pytest.fixture
def made(store_url: str, tmp_path: Path) -> Monitored:
    """Two streams, each with a commit."""
    found = Monitored(tmp_path / "lake", store_url)
    found.store.migrate()
    found._clock(hours=1)
    for name in ("a", "b"):
        found._stream(name)
        found._commit(name, times=1)
    return found


def deliver(made: Monitored, dag: str, *sources: str | None, act: object = consume) -> TransactionKey:
    """One transaction from both streams; the n-th target gets the changes of the n-th source."""
    key = TransactionKey(dag, str(uuid.uuid4()), "deliver")
    writes = zip(sources, made.world.writes(*range(len(sources))), strict=True)
    act(  # type: ignore[operator]
        made.world.runtime,
        key=key,
        streams=("a", "b"),
        writes=tuple(replace(write, source=source) for source, write in writes),
        owner=f"{key}#1@worker:1",
    )
    return key


READS = {("table shop.a", "stream a"), ("table shop.b", "stream b")}


def test_a_stream_leads_to_the_targets_of_the_statements_that_name_it(made: Monitored) -> None:
    deliver(made, "one", "a", "b")
    assert flows(made.store) == {
        **dict.fromkeys(READS, frozenset()),
        ("stream a", "table target0"): frozenset({"one"}),
        ("stream b", "table target1"): frozenset({"one"}),
    }
    made._commit("a", times=1)
    deliver(made, "two", "B", "B")
    found = flows(made.store)
    assert found["stream b", "table target1"] == {"one", "two"}
    assert found["stream b", "table target0"] == {"two"}
    assert found["stream a", "table target0"] == {"one"}


def test_an_open_window_leads_to_its_targets_and_a_released_one_to_none(made: Monitored) -> None:
    key = deliver(made, "open", "a", "b", act=begin)
    assert ("stream a", "table target0") in flows(made.store)
    rollback(made.store, key)
    assert flows(made.store).keys() == READS


def test_a_stream_that_none_of_the_newest_transactions_has_taken_from_keeps_its_targets(
    made: Monitored, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(made, "one", "a", "b")
    expected = flows(made.store)
    monkeypatch.setattr(ties, "NEWEST", 0)
    assert flows(made.store) == expected


def test_a_re_based_stream_keeps_the_targets_of_those_before_it(made: Monitored) -> None:
    deliver(made, "one", "a", "b")
    old = made.store.read(lambda c: streams.find(c, "a"))
    new = replace(old, uid=str(uuid.uuid4()))
    made.store.write(lambda c: streams.rebase(c, old, new, at=made.store.clock(), who="ana", why="it was stale"))
    assert flows(made.store)["stream a", "table target0"] == {"one"}


def test_a_stream_that_is_dropped_leads_nowhere(made: Monitored) -> None:
    deliver(made, "one", "a", "b")
    drop_stream(made.store, "a", "ana")
    assert flows(made.store).keys() == {("table shop.b", "stream b"), ("stream b", "table target1")}
