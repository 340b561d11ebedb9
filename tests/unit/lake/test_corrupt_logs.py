"""A damaged log gives an error with a name and a place, or exactly the right answer: never another, never a traceback.

The logs are Delta's own (`golden_logs.py`). Damage that leaves well-formed JSON of another meaning is not damage that a
reader can see; there the answer must be what the file now says.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiers import some
from tests.unit.lake.delta_directories import born
from tests.unit.lake.golden_logs import GOLDEN, NAMES
from tidemark.changes.driver.plan import plan_changes
from tidemark.errors import (
    CorruptLog,
    LogIncomplete,
    NotADeltaTable,
    TableNotFound,
    TidemarkError,
    VersionNotFound,
    VersionVacuumed,
)
from tidemark.lake import deletion_vectors
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode

HEAD = 7
FEW_NAMES = some(NAMES, now=["vectors"])
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
CONTENTS = [b"", b"\n\n", b"\0" * 400, b"PAR1\0\0PAR1", b"\xff\xfe{}", b"[" * 100_000, b"{}"]
FUZZ = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Answers(dict[str, Any]):
    """Question → answer, or the error that came instead."""

    def __repr__(self) -> str:
        return f"{len(self)} answers"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("golden")
    for name in NAMES:
        shutil.copytree(GOLDEN / name, root / name)
    return {name: root / name for name in NAMES}


@pytest.fixture(scope="module")
def right(tables: dict[str, Path]) -> dict[str, Answers]:
    return {name: answers(path) for name, path in tables.items()}


def vectors_of(log: DeltaLog) -> list[list[int]]:
    found = [file.deletion_vector for commit in log.commits(-1, HEAD) for file in commit.adds if file.deletion_vector]
    return [list(deletion_vectors.load(vector, log.uri, log.storage)) for vector in found]


def questions() -> dict[str, Callable[[DeltaLog], Any]]:
    """Everything that is asked of a log; file times, which a copy does not keep, only for being had at all."""
    asked: dict[str, Callable[[DeltaLog], Any]] = {
        "head": DeltaLog.head,
        "vectors": vectors_of,
        "earliest": DeltaLog.earliest,
        "first time": lambda log: isinstance(log.version_at(EPOCH + timedelta(days=9999)), int),
    }
    for version in range(HEAD + 1):
        asked[f"state {version}"] = lambda log, at=version: log.state(at)
        asked[f"time {version}"] = lambda log, at=version: isinstance(log.timestamp(at), datetime)
    for after, through in ((-1, HEAD), (0, HEAD), (2, 5), (3, 4), (4, 5), (5, 7), (6, 7)):
        span = f"({after}, {through}]"
        asked[f"commits {span}"] = lambda log, a=after, b=through: [
            {**vars(commit), "timestamp": None} for commit in log.commits(a, b)
        ]
        asked[f"has changes {span}"] = lambda log, a=after, b=through: log.has_changes(a, b)
        if after >= 0:
            asked[f"plan {span}"] = lambda log, a=after, b=through: plan_changes(log, a, b, StreamMode.STANDARD)
    return asked


QUESTIONS = questions()


def answers(table: Path) -> Answers:
    """The answer to each question, or the error that came instead; any other exception fails the test."""
    found = Answers()
    for name, request in QUESTIONS.items():
        try:
            found[name] = request(DeltaLog.open(str(table)))
        except TidemarkError as error:
            found[name] = error
        except FileNotFoundError as error:  # what `load` promises for a vector's file; a plan names it
            if name != "vectors":
                raise
            found[name] = VersionVacuumed(table=table, start=0, end=HEAD, count=1, first=error.filename)
    places = (str(table), "_delta_log", ".checkpoint", "deletion", "not Z85")
    assert [str(error) for error in errors(found).values() if not any(place in str(error) for place in places)] == []
    return found


def wrong(found: Answers, right: Answers) -> list[str]:
    return [name for name, answer in found.items() if not isinstance(answer, TidemarkError) and answer != right[name]]


def errors(found: Answers) -> dict[str, TidemarkError]:
    return {name: answer for name, answer in found.items() if isinstance(answer, TidemarkError)}


@contextmanager
def changed(file: Path, data: bytes | None) -> Iterator[None]:
    """The file with other content, or gone; afterwards as it was."""
    before = file.read_bytes()
    file.unlink()
    if data is not None:
        file.write_bytes(data)
    try:
        yield
    finally:
        file.write_bytes(before)


def commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def log_files(table: Path) -> list[Path]:
    """Every file that a reader of the log may open."""
    found = [*(table / "_delta_log").iterdir(), *table.rglob("deletion_vector_*.bin")]
    return sorted(file for file in found if file.is_file())


def test_the_whole_logs_answer_every_question(right: dict[str, Answers]) -> None:
    for found in right.values():
        assert errors(found) == {}
        assert found["head"] == HEAD
        assert found["vectors"] == [[1], [1], [1, 2], [1, 2]]


@pytest.mark.parametrize("name", FEW_NAMES)
@given(data=st.data())
@FUZZ
def test_a_file_cut_anywhere(
    tables: dict[str, Path], right: dict[str, Answers], name: str, data: st.DataObject
) -> None:
    file = data.draw(st.sampled_from(log_files(tables[name])), "file")
    whole = file.read_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1), "kept")]
    with changed(file, cut):
        found = answers(tables[name])
    said = {question for question in wrong(found, right[name]) if not read_in_part(question, file, cut)}
    assert said == set()


def read_in_part(question: str, file: Path, cut: bytes) -> bool:
    """Whether the answer is what is left of a commit that was cut just behind a line, where no checksum tells."""
    return cut.endswith((b"}}", b"}}\n")) and file.suffix == ".json" and question.startswith(("state", "has changes"))


@pytest.mark.parametrize("name", FEW_NAMES)
@pytest.mark.parametrize("version", some(range(HEAD + 1), now=(0, 4, HEAD)))
def test_a_commit_that_lost_lines(tables: dict[str, Path], right: dict[str, Answers], name: str, version: int) -> None:
    """Cut just behind a line it is well-formed; the writer's checksums say that something is gone."""
    lines = commit(tables[name], version).read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        with changed(commit(tables[name], version), b"".join(lines[:kept])):
            found = answers(tables[name])
        lost = lines[kept:]
        if not any(line.startswith((b'{"add"', b'{"remove"')) for line in lost):
            continue  # what holds for the table is said again at the range's end, and compared there
        assert [question for question in wrong(found, right[name]) if question.startswith(("commits", "plan"))] == []


@pytest.mark.parametrize("name", FEW_NAMES)
@given(data=st.data())
@FUZZ
def test_a_file_gone(tables: dict[str, Path], right: dict[str, Answers], name: str, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(log_files(tables[name])), "file")
    with changed(file, None):
        found = answers(tables[name])
    allowed = {"earliest"} | ({"head"} if file == commit(tables[name], HEAD) else set())
    assert set(wrong(found, right[name])) <= allowed
    if file.name.endswith(".json") and "checkpoint" not in file.name and file != commit(tables[name], HEAD):
        version = int(file.stem)
        assert isinstance(found["commits (-1, 7]"], LogIncomplete)
        assert found["commits (-1, 7]"].facts["version"] == version


@pytest.mark.parametrize("name", FEW_NAMES)
@pytest.mark.parametrize("content", some(CONTENTS, now=[b"PAR1\0\0PAR1"]))
def test_a_file_of_something_else(
    tables: dict[str, Path], right: dict[str, Answers], name: str, content: bytes
) -> None:
    for file in log_files(tables[name]):
        with changed(file, content):
            found = answers(tables[name])
        assert wrong(found, right[name]) == []
        if file == commit(tables[name], 5):
            assert isinstance(found["commits (4, 5]"], CorruptLog)
            assert file.name in found["commits (4, 5]"].facts["file"]


@pytest.mark.parametrize("name", FEW_NAMES)
def test_a_directory_in_the_place_of_a_file(tables: dict[str, Path], right: dict[str, Answers], name: str) -> None:
    for file in log_files(tables[name]):
        with changed(file, None):
            file.mkdir()
            try:
                found = answers(tables[name])
            finally:
                file.rmdir()
        assert wrong(found, right[name]) == []


@pytest.mark.parametrize("name", FEW_NAMES)
def test_two_files_exchanged(tables: dict[str, Path], right: dict[str, Answers], name: str) -> None:
    """Commits of neighbours, checkpoints, deletion vectors: what the writer's checksums and the commits say betrays it.

    A read of neither end of the exchange may be right; a range with one commit of two is caught by its checksum.
    """
    files = log_files(tables[name])
    commits = [file for file in files if file.suffix == ".json" and file.stem.isdigit()]
    pairs = [*pairwise(commits)]
    pairs += [tuple(file for file in files if ".checkpoint." in file.name)]  # type: ignore[list-item]
    pairs += [tuple(file for file in files if file.suffix == ".bin")]  # type: ignore[list-item]
    for one, other in pairs:
        first, second = one.read_bytes(), other.read_bytes()
        with changed(one, second), changed(other, first):
            found = answers(tables[name])
        said = wrong(found, right[name])
        if one.stem.isdigit():
            said = [question for question in said if question.startswith(("commits", "plan"))]
        assert said == [], (one.name, other.name)


@pytest.mark.parametrize("name", FEW_NAMES)
@given(data=st.data())
@FUZZ
def test_an_action_repeated(tables: dict[str, Path], right: dict[str, Answers], name: str, data: st.DataObject) -> None:
    """In its own commit or in another: a file is never counted twice."""
    source = commit(tables[name], data.draw(st.integers(0, HEAD), "from"))
    target = commit(tables[name], data.draw(st.integers(0, HEAD), "to"))
    line = data.draw(st.sampled_from(source.read_bytes().splitlines(keepends=True)), "line")
    kind = next(iter(json.loads(line)))
    with changed(target, target.read_bytes() + line):
        found = answers(tables[name])
    if kind in ("add", "remove"):
        assert [question for question in wrong(found, right[name]) if question.startswith("plan")] == []


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "12", "null", "\0", "\ud800", "x" * 5000, "../..", "u", "{}", "[1]", '{"numRecords":"many"}']),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if above:
        yield above
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*above, key))


@pytest.mark.parametrize("name", FEW_NAMES)
@given(data=st.data())
@settings(FUZZ, max_examples=12)
def test_a_field_of_another_type(
    tables: dict[str, Path], right: dict[str, Answers], name: str, data: st.DataObject
) -> None:
    """Any value of any action replaced, in commits and in JSON checkpoints, texts that are JSON included.

    What is asked must end in an answer or an error of ours; where the value stays of its type, the answer is the new
    one, so here it is not compared.
    """
    files = [file for file in log_files(tables[name]) if file.suffix == ".json"]
    file = data.draw(st.sampled_from(files), "file")
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    action = data.draw(st.sampled_from(lines), "action")
    *way, last = data.draw(st.sampled_from(list(places(action))), "place")
    holder = action
    for key in way:
        holder = holder[key]
    if data.draw(st.booleans(), "left out") and isinstance(holder, dict):
        del holder[last]
    else:
        holder[last] = data.draw(JUNK, "value")
    with changed(file, "\n".join(map(json.dumps, lines)).encode()):
        answers(tables[name])


@pytest.mark.parametrize("name", FEW_NAMES)
@given(data=st.data())
@settings(FUZZ, max_examples=12)
def test_a_byte_flipped(tables: dict[str, Path], right: dict[str, Answers], name: str, data: st.DataObject) -> None:
    """In a deletion vector or a Parquet checkpoint it is found; in a commit the answer is what the file now says."""
    file = data.draw(st.sampled_from(log_files(tables[name])), "file")
    flipped = bytearray(file.read_bytes())
    flipped[data.draw(st.integers(0, len(flipped) - 1), "at")] ^= 1 << data.draw(st.integers(0, 7), "bit")
    with changed(file, bytes(flipped)):
        found = answers(tables[name])
        if file.suffix != ".json":
            assert wrong(found, right[name]) == []
        elif "checkpoint" not in file.name:
            assert_said_by_the_files(found["commits (-1, 7]"], tables[name])


def assert_said_by_the_files(found: Any, table: Path) -> None:
    """Against the plainest reader that there can be: each line a JSON object with one action."""
    if isinstance(found, TidemarkError):
        return
    for version, said in enumerate(found):
        actions = [json.loads(line) for line in commit(table, version).read_bytes().splitlines()]
        for kind, field in (("add", "adds"), ("remove", "removes")):
            bodies = [action[kind] for action in actions if kind in action]
            assert [(one.path, one.data_change, one.base_row_id) for one in said[field]] == [
                (body["path"], body["dataChange"], body.get("baseRowId")) for body in bodies
            ]


def test_a_hint_that_lies_does_not_matter(tables: dict[str, Path], right: dict[str, Answers]) -> None:
    for name, table in tables.items():
        for text in (b'{"version": 99, "size": 1}', b'{"version": "x"}', b"", b"\xff"):
            with changed(table / "_delta_log" / "_last_checkpoint", text):
                assert answers(table) == right[name]


def test_a_file_of_an_impossible_version_is_a_gap_and_behind_a_checkpoint_nobody_asks_for_it(
    tables: dict[str, Path],
) -> None:
    table = tables["vectors"]
    stray, said = (table / "_delta_log" / name for name in ("9" * 20 + ".json", "_last_checkpoint"))
    stray.write_bytes(commit(table, HEAD).read_bytes())
    text = said.read_bytes()
    try:
        assert DeltaLog.open(str(table)).state().version == HEAD
        said.unlink()
        with pytest.raises(LogIncomplete):
            DeltaLog.open(str(table)).state()
        with pytest.raises(LogIncomplete):
            list(DeltaLog.open(str(table)).commits(0, HEAD + 1))
        assert len(list(DeltaLog.open(str(table)).commits(0, HEAD))) == HEAD
    finally:
        said.write_bytes(text)
        stray.unlink()


def test_no_log_at_all_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other" / "_delta_log").mkdir(parents=True)
    (tmp_path / "log" / "_delta_log").mkdir(parents=True)
    (tmp_path / "log" / "_delta_log" / "notes.txt").write_text("x")
    for name in ("file", "empty", "other", "log", "absent", "file/below"):
        with pytest.raises((NotADeltaTable, TableNotFound)):
            DeltaLog.open(str(tmp_path / name))


def test_versions_out_of_range_are_said(tables: dict[str, Path]) -> None:
    log = DeltaLog.open(str(tables["vectors"]))
    for version in (-1, HEAD + 1, 2**70):
        with pytest.raises(VersionNotFound):
            log.state(version)
        with pytest.raises(VersionNotFound):
            log.timestamp(version)


FIELD = {"name": "a", "type": "string", "nullable": True, "metadata": {}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "struct"},
        {"type": "struct", "fields": None},
        {"type": "struct", "fields": [{**FIELD, "type": {"type": "struct"}}]},
        {"type": "struct", "fields": [{key: value for key, value in FIELD.items() if key != "nullable"}]},
        {"type": "struct", "fields": [{**FIELD, "nullable": "yes"}]},
        {"type": "struct", "fields": [{**FIELD, "type": {"type": "array", "elementType": "string"}}]},
        {"type": "struct", "fields": [{**FIELD, "type": {"type": "map", "keyType": "string", "valueType": "string"}}]},
    ],
)
def test_a_schema_of_which_something_is_missing(tmp_path: Path, schema: dict[str, Any]) -> None:
    table = tmp_path / "t"
    log = born(table)
    whole = commit(table, 0).read_text()
    before, after = (json.dumps(json.dumps(one)) for one in ({"type": "struct", "fields": []}, schema))
    assert before in whole
    commit(table, 0).write_text(whole.replace(before, after))
    with pytest.raises(CorruptLog, match="not a struct type"):
        log.state()


@pytest.mark.parametrize("name", ["delta.columnMapping.maxColumnId", "delta.inCommitTimestampEnablementVersion"])
@pytest.mark.parametrize("said", ["", "-1", "²", "1.0", "many", "9" * 5_000])
def test_a_property_that_is_no_number_is_said_with_the_commit(tmp_path: Path, name: str, said: str) -> None:
    log = born(tmp_path, **{name: said})
    with pytest.raises(CorruptLog, match=rf"{name} is .*, not a whole number"):
        log.state()
