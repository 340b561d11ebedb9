"""Logs on an object store: whole listings, nothing from a cache, names of any letters, and failures with a name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.object_store import BUCKET, ObjectStore, running_object_store
from tests.unit.lake.delta_directories import PROTOCOL, add, metadata, row_id_mark
from tests.unit.lake.golden_logs import GOLDEN
from tidemark.errors import (
    DataFileChanged,
    LakeError,
    LogIncomplete,
    NotADeltaTable,
    NotAFile,
    StorageRefused,
    StorageUnreachable,
    TableNotFound,
)
from tidemark.lake import deletion_vectors
from tidemark.lake import storage as storage_module
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.external_tables import files_of, require_unchanged
from tidemark.lake.paths import file_uri
from tidemark.lake.storage import Storage, canonical_uri
from tidemark.model.external_tables import ExternalTable, FileFormat

ODD_NAMES = ["a b+c", "100%", "a%20b", "a#b?c=d&e", "żółw ä 日本 it's"]
IMPATIENT = {"config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 1, "read_timeout": 1}}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as running:
        yield running


def put_commit(store: ObjectStore, table: str, version: int, *actions: dict[str, Any]) -> None:
    store.put(f"{table}/_delta_log/{version:020d}.json", "".join(json.dumps(one) + "\n" for one in actions).encode())


def born(store: ObjectStore, table: str) -> DeltaLog:
    put_commit(store, table, 0, PROTOCOL, metadata(), row_id_mark(9))
    return DeltaLog.open(f"s3://{BUCKET}/{table}", store.options)


def put_directory(store: ObjectStore, source: Path, prefix: str) -> None:
    for file in source.rglob("*"):
        if file.is_file():
            store.put(f"{prefix}/{file.relative_to(source).as_posix()}", file.read_bytes())


@pytest.mark.parametrize("scheme", ["s3", "s3a", "S3N"])
def test_every_name_of_the_scheme_is_one_place(scheme: str) -> None:
    assert canonical_uri(f"{scheme}://lake/a b/") == "s3://lake/a b"


@pytest.mark.parametrize(("name", "odd"), [("exact_times", "plain"), *(("vectors", odd) for odd in ODD_NAMES)])
def test_a_log_says_the_same_there_as_on_disk(store: ObjectStore, odd: str, name: str) -> None:
    put_directory(store, GOLDEN / name, f"{odd}/{name}")
    local = DeltaLog.open(str(GOLDEN / name))
    log = DeltaLog.open(f"s3://{BUCKET}/{odd}/{name}", store.options)
    assert (log.head(), log.state(7)) == (7, local.state(7))
    commits = list(log.commits(2, 7))
    assert [{**vars(one), "timestamp": None} for one in commits] == [
        {**vars(one), "timestamp": None} for one in local.commits(2, 7)
    ]
    assert [commit.timestamp for commit in commits[::4]] == [log.timestamp(3), log.timestamp(7)]
    assert (log.has_changes(4, 5), log.has_changes(3, 4)) == (False, True)
    for file in commits[0].adds:
        assert log.storage.exists(file_uri(log.uri, file.path))
        assert file.deletion_vector is not None
        rows = deletion_vectors.load(file.deletion_vector, log.uri, log.storage)
        moved = deletion_vectors.absolute(file.deletion_vector, log.uri)
        assert deletion_vectors.load(moved, "s3://other/t", Storage("s3://other", store.options)) == rows


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_a_data_file_in_a_partition_of_any_letters_is_found(store: ObjectStore, odd: str) -> None:
    from urllib.parse import quote

    key = f"t/p={quote(odd)}/part {odd}.parquet"
    with pa.BufferOutputStream() as sink:
        pq.write_table(pa.table({"k": [1, 2, 3]}), sink)
        store.put(key, sink.getvalue().to_pybytes())
    storage = Storage(f"s3://{BUCKET}/t", store.options)
    place = file_uri(storage.uri, quote(key.removeprefix("t/")))
    assert storage.exists(place)
    with storage.open(place) as opened:
        assert pq.ParquetFile(opened).metadata.num_rows == 3
    assert not storage.exists(place + "x")


def test_a_log_longer_than_a_page_of_the_listing(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "20")
    log = born(store, "long")
    for version in range(1, 51):
        put_commit(store, "long", version, add(f"f{version}"))
    page = store.client.list_objects_v2(Bucket=BUCKET, Prefix="long/")
    assert page["IsTruncated"]
    assert (log.head(), log.earliest()) == (50, 0)
    assert [commit.version for commit in log.commits(10, 50)] == list(range(11, 51))
    assert len(log.storage.modified_times("_delta_log")) == 51


def test_a_new_commit_is_seen_at_once(store: ObjectStore) -> None:
    """By a log that has listed before, and by another of the same options: neither keeps a listing."""
    log, another = born(store, "fresh"), DeltaLog.open(f"s3://{BUCKET}/fresh", store.options)
    for version in range(1, 6):
        assert (log.head(), another.head()) == (version - 1, version - 1)
        assert not log.storage.exists(f"_delta_log/{version:020d}.json")
        put_commit(store, "fresh", version, metadata(x=str(version)))
        assert log.storage.exists(f"_delta_log/{version:020d}.json")
        assert (log.head(), another.head()) == (version, version)
        assert another.state().metadata.configuration == {"x": str(version)}


def test_a_directory_marker_is_no_commit(store: ObjectStore) -> None:
    log = born(store, "marked")
    for key in ("marked/", "marked/_delta_log/", "marked/_delta_log/_staged_commits/"):
        store.put(key, b"")
    assert (log.head(), log.state().version, len(list(log.commits(-1, 0)))) == (0, 0, 1)
    assert log.version_at(log.timestamp(0)) == 0


def test_what_is_not_there_is_said(store: ObjectStore) -> None:
    store.put("other/file.parquet", b"PAR1")
    with pytest.raises(NotADeltaTable):
        DeltaLog.open(f"s3://{BUCKET}/other", store.options)
    for place in (f"s3://{BUCKET}/absent", "s3://no-such-bucket/t"):
        with pytest.raises(TableNotFound):
            DeltaLog.open(place, store.options)
    log = born(store, "gap")
    put_commit(store, "gap", 2, add("a"))
    with pytest.raises(LogIncomplete) as gap:
        list(log.commits(0, 2))
    assert gap.value.facts["version"] == 1
    assert log.earliest() == 2


def test_a_listing_that_missed_a_commit_is_no_gap(store: ObjectStore) -> None:
    """A listing by pages goes by name while others write: it may lack what was written behind it."""
    log = born(store, "pages")
    for version in range(1, 5):
        put_commit(store, "pages", version, add(f"f{version}"))

    class Paged(Storage):
        def names(self, directory: str = "") -> list[str]:
            return [name for name in super().names(directory) if f"{3:020d}" not in name][::-1]

        def modified_times(self, directory: str) -> dict[str, Any]:
            return {
                name: time for name, time in super().modified_times(directory).items() if name in self.names(directory)
            }

    paged = DeltaLog(Paged(log.uri, store.options))
    assert (paged.head(), paged.earliest()) == (4, 0)
    assert [commit.version for commit in paged.commits(0, 4)] == [1, 2, 3, 4]
    assert paged.timestamp(3) >= paged.timestamp(2)


@pytest.fixture
def broken_store() -> Iterator[tuple[str, dict[str, int]]]:
    """A server that answers every request with the status in the dictionary; 0: not at all."""
    answer = {"status": 403}
    stopped = threading.Event()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if answer["status"] == 0:
                stopped.wait(10)
                return
            body = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>" if answer["status"] == 403 else b""
            self.send_response(answer["status"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answer
    stopped.set()
    server.shutdown()
    server.server_close()


def asked(storage: Storage) -> dict[str, type[Exception]]:
    """What each kind of question raises."""
    found: dict[str, LakeError] = {}
    for name, request in {
        "names": lambda: storage.names("_delta_log"),
        "times": lambda: storage.modified_times("_delta_log"),
        "exists": lambda: storage.exists("_delta_log/x"),
        "bytes": lambda: storage.read_bytes("_delta_log/x"),
        "open": lambda: storage.open("x").__enter__(),
        "modified": lambda: storage.modified_at("x"),
    }.items():
        try:
            request()
        except (StorageRefused, StorageUnreachable) as error:
            found[name] = error
    assert [str(error) for error in found.values() if "secret-of-mine" in str(error)] == []
    assert [error for error in found.values() if not error.facts["place"].startswith(storage.uri)] == []
    return {name: type(error) for name, error in found.items()}


QUESTIONS = ("names", "times", "exists", "bytes", "open", "modified")


def test_a_refusal_is_never_taken_for_an_absence(broken_store: tuple[str, dict[str, int]]) -> None:
    endpoint, _ = broken_store
    storage = Storage("s3://lake/t", {"key": "k", "secret": "secret-of-mine", "endpoint_url": endpoint, **IMPATIENT})
    assert asked(storage) == dict.fromkeys(QUESTIONS, StorageRefused)


@pytest.mark.parametrize("status", [503, 0])
def test_a_store_that_fails_or_hangs_is_unreachable(broken_store: tuple[str, dict[str, int]], status: int) -> None:
    endpoint, answer = broken_store
    answer["status"] = status
    soon = {"config_kwargs": {"retries": {"max_attempts": 1}, "read_timeout": 0.2}}
    storage = Storage("s3://lake/t", {"key": "k", "secret": "secret-of-mine", "endpoint_url": endpoint, **soon})
    with pytest.raises(StorageUnreachable) as raised:
        storage.names("_delta_log")
    assert raised.value.facts["place"] == "s3://lake/t/_delta_log"


def test_nobody_there_is_unreachable() -> None:
    options = {"key": "k", "secret": "secret-of-mine", "endpoint_url": "http://127.0.0.1:9", **IMPATIENT}
    assert asked(Storage("s3://lake/t", options)) == dict.fromkeys(QUESTIONS, StorageUnreachable)


@pytest.mark.parametrize(
    "options", [{"endpoint_url": "not a url"}, {"client_kwargs": {"no_such": 1}}, {"config_kwargs": {"no_such": 1}}]
)
def test_options_that_make_no_sense_are_said(options: dict[str, Any]) -> None:
    with pytest.raises(StorageUnreachable, match="storage options"):
        DeltaLog.open("s3://lake/t", {"key": "k", "secret": "s", **options})


def test_a_scheme_without_its_client_says_what_to_install() -> None:
    with pytest.raises(StorageUnreachable, match="gcsfs"):
        DeltaLog.open("gs://lake/t")
    with pytest.raises(StorageUnreachable, match="nosuch"):
        DeltaLog.open("nosuch://lake/t")


def test_an_object_is_read_as_far_as_a_file_of_a_disk(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_module, "MOST_BYTES", 1_000)
    storage = Storage(f"s3://{BUCKET}/sizes", store.options)
    for name, size in (("empty", 0), ("just", 1_000), ("larger", 1_001)):
        store.put(f"sizes/{name}", bytes(size))
    assert [storage.read_bytes(name) for name in ("empty", "just")] == [b"", bytes(1_000)]
    assert storage.read_bytes("larger", 1) == bytes(1_000)
    assert storage.read_bytes("larger", 0, 1_001) == bytes(1_001)
    with pytest.raises(NotAFile, match="no more are read at once"):
        storage.read_bytes("larger")
    with pytest.raises(FileNotFoundError):
        storage.read_bytes("nothing")


def test_a_file_that_was_overwritten_with_the_same_size_in_the_same_second_is_changed(store: ObjectStore) -> None:
    store.put("outside/1.csv", b"1")
    outside = ExternalTable("t", f"s3://{BUCKET}/outside", FileFormat.CSV, "{}")
    (known,) = files_of(outside, store.options)
    require_unchanged(outside, [known], store.options)
    store.put("outside/1.csv", b"2")
    (now,) = files_of(outside, store.options)
    with pytest.raises(DataFileChanged, match="ETag"):
        require_unchanged(outside, [replace(now, etag=known.etag)], store.options)
