"""The end of a long log says what the whole log says, and nobody lists a long log for it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.guarantees.synthetic_tables import CHECKPOINT
from tests.object_store import BUCKET, ObjectStore, running_object_store
from tests.unit.lake.delta_directories import PROTOCOL, add, born, commit, metadata
from tidemark.errors import LakeError, SourceError, VersionNotFound
from tidemark.lake.delta_log import DeltaLog

HEAD = 43
_listed: list[str] = []
_is_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _is_watching and event in ("os.scandir", "os.listdir"):
        _listed.append(str(arguments[0]))


sys.addaudithook(_watch)


@contextmanager
def directories_listed() -> Iterator[list[str]]:
    """The directories of logs that Python lists meanwhile, in any library."""
    global _is_watching
    _listed.clear()
    _is_watching = True
    try:
        yield _listed
    finally:
        _is_watching = False
        _listed[:] = [place for place in _listed if place.endswith("_delta_log")]


def checkpoint(table: Path, version: int, **said: Any) -> Path:
    """A classic checkpoint, and `_last_checkpoint` as a writer leaves it."""
    state = {"id": "id-1", "schemaString": json.dumps({"type": "struct", "fields": []}), "partitionColumns": []}
    rows = [PROTOCOL, {"metaData": {**state, "format": {"provider": "parquet"}, "configuration": []}}]
    file = table / "_delta_log" / f"{version:020d}.checkpoint.parquet"
    pq.write_table(pa.Table.from_pylist(rows, CHECKPOINT), file)
    (table / "_delta_log" / "_last_checkpoint").write_text(json.dumps({"version": version, "size": 2, **said}))
    return file


def long_log(table: Path) -> DeltaLog:
    log = born(table)
    for version in range(1, HEAD + 1):
        commit(table, version, add(f"f{version}"))
        if version % 10 == 0:
            checkpoint(table, version)
    return log


def test_head_and_states_of_a_long_log_need_no_listing_of_it(tmp_path: Path) -> None:
    log = long_log(tmp_path)
    with directories_listed() as listed:
        assert DeltaLog.open(str(tmp_path)).head() == HEAD
        assert (log.state().version, log.state(25).version) == (HEAD, 25)
        assert [one.version for one in log.commits(30, HEAD)] == list(range(31, HEAD + 1))
        assert log.goes_on_from(25)
        assert log.has_changes(25, HEAD)
        assert log.timestamp(0) is not None
    assert listed == []
    with directories_listed() as listed:
        assert log.earliest() == 0
    assert len(listed) == 1


def test_a_checkpoint_behind_a_lost_commit_is_the_head(tmp_path: Path) -> None:
    born(tmp_path)
    checkpoint(tmp_path, 1)
    checkpoint(tmp_path, 0)
    assert DeltaLog.open(str(tmp_path)).head() == 1


def test_a_version_that_never_was_is_named_with_the_versions_that_are(tmp_path: Path) -> None:
    log = long_log(tmp_path)
    with pytest.raises(VersionNotFound) as error:
        log.state(HEAD + 1)
    assert (error.value.facts["earliest"], error.value.facts["latest"]) == (0, HEAD)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[]",
        "{}",
        '{"version": 7}',
        '{"version": -1}',
        '{"version": "40"}',
        '{"version": 40.0}',
        f'{{"version": {10**30}}}',
        '{"version": 40, "parts": 2}',
        '{"version": 40, "parts": 0}',
        f'{{"version": 40, "parts": {10**9}}}',
        '{"version": 40, "v2Checkpoint": {"path": "../../x"}}',
        '{"version": 40, "v2Checkpoint": {"path": "a\\u0000b"}}',
        '{"version": 40, "v2Checkpoint": {}}',
        '{"version": 20}',
        '{"version": 40, "checksum": "of another writer"}',
    ],
)
def test_a_last_checkpoint_of_any_text_leaves_the_log_as_it_is(tmp_path: Path, said: str) -> None:
    log = long_log(tmp_path)
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text(said)
    assert (log.head(), log.state().version, log.state(33).version) == (HEAD, HEAD, 33)


def test_a_directory_in_place_of_the_last_checkpoint_leaves_the_log_as_it_is(tmp_path: Path) -> None:
    log = long_log(tmp_path)
    (tmp_path / "_delta_log" / "_last_checkpoint").unlink()
    (tmp_path / "_delta_log" / "_last_checkpoint").mkdir()
    assert log.head() == HEAD


def test_checkpoints_in_parts_and_of_version_2_are_found_by_the_last_checkpoint(tmp_path: Path) -> None:
    log = long_log(tmp_path)
    place = tmp_path / "_delta_log"
    whole = checkpoint(tmp_path, 40, parts=2)
    for part in (1, 2):
        shutil.copy(whole, place / f"{40:020d}.checkpoint.{part:010d}.{2:010d}.parquet")
    whole.unlink()
    with directories_listed() as listed:
        assert (log.head(), log.state().version) == (HEAD, HEAD)
    name = f"{40:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (place / name).write_text("".join(json.dumps(one) + "\n" for one in (PROTOCOL, metadata())))
    checkpoint(tmp_path, 40, v2Checkpoint={"path": name}).unlink()
    with directories_listed() as listed_too:
        assert (log.head(), log.state().version) == (HEAD, HEAD)
    assert listed == listed_too == []


def outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (SourceError, LakeError) as error:
        return type(error).__name__


DAMAGE = st.fixed_dictionaries(
    {
        "head": st.integers(3, 60),
        "checkpoints": st.sets(st.integers(0, 60), max_size=5),
        "named": st.integers(0, 60),
        "cleaned": st.integers(0, 50),
        "lost": st.sets(st.integers(0, 60), max_size=2),
    }
)


@settings(max_examples=150, deadline=None)
@given(DAMAGE, st.data())
def test_any_log_says_the_same_with_and_without_its_last_checkpoint(
    damage: dict[str, Any], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "t"
        born(table)
        for version in range(1, damage["head"] + 1):
            commit(table, version, add(f"f{version}"))
        for version in damage["checkpoints"]:
            if version <= damage["head"]:
                checkpoint(table, version)
        for version in {*range(damage["cleaned"]), *damage["lost"]}:
            (table / "_delta_log" / f"{version:020d}.json").unlink(missing_ok=True)
        (table / "_delta_log" / "_last_checkpoint").write_text(json.dumps({"version": damage["named"]}))
        log, at = DeltaLog.open(directory + "/t") if _has_head(table) else None, data.draw(st.integers(-1, 61))
        if log is None:
            return
        asked: list[Callable[[], Any]] = [
            log.head,
            log.earliest,
            lambda: log.goes_on_from(at),
            log.state,
            lambda: log.state(at),
            lambda: [one.version for one in log.commits(at, log.head())],
            lambda: log.timestamp(at),
        ]
        found = [outcome(act) for act in asked]
        os.unlink(table / "_delta_log" / "_last_checkpoint")
        assert found == [outcome(act) for act in asked]


def _has_head(table: Path) -> bool:
    return any(file.suffix in (".json", ".parquet") for file in (table / "_delta_log").iterdir())


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as running:
        yield running


def test_a_long_log_of_an_object_store_is_listed_from_its_last_checkpoint_on(
    store: ObjectStore, tmp_path: Path
) -> None:
    local = long_log(tmp_path)
    for file in (tmp_path / "_delta_log").iterdir():
        store.put(f"t/_delta_log/{file.name}", file.read_bytes())
    log = DeltaLog.open(f"s3://{BUCKET}/t", store.options)
    assert (log.head(), log.state(), log.state(25)) == (HEAD, local.state(), local.state(25))
    assert log.goes_on_from(25)
    assert log.earliest() == 0
    whole = {one.version: one.timestamp for one in log.commits(0, HEAD, listed=True)}
    assert {one.version: one.timestamp for one in log.commits(41, HEAD)} == {n: whole[n] for n in (42, 43)}
    for version in range(30, 40):  # holes that only a listing of the whole would meet
        store.client.delete_object(Bucket=BUCKET, Key=f"t/_delta_log/{version:020d}.json")
    assert log.state().version == HEAD
    assert (log.goes_on_from(25), log.goes_on_from(40)) == (False, True)
    store.client.delete_object(Bucket=BUCKET, Key=f"t/_delta_log/{40:020d}.checkpoint.parquet")
    assert log.head() == HEAD
