"""Files below a directory, page by page: exact names, one rule of hidden ones, and requests that are counted."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.object_store import BUCKET, ObjectStore, running_object_store
from tidemark.errors import InvalidArgument, StorageRefused, StorageUnreachable
from tidemark.lake.file_listing import MOST_IN_PAGE, FileListing
from tidemark.lake.file_names import FileFilter
from tidemark.pipes.worker.listings import Listings

IMPATIENT = {"config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 1, "read_timeout": 0.2}}
ODD_NAMES = ["a b+c", "100%", "a%20b", "k=v", "żółw 日本 🐢", "two\nlines", "a?b#c&d", "[x]*", "a\\b"]
PARTS = st.one_of(
    st.sampled_from([*ODD_NAMES, "_x", ".x", "x_", "x.y", "0", "a", "a0", "a-"]),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=3),
).filter(lambda part: part not in (".", ".."))
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
IN_STORE = NAMES.filter(str.isprintable)  # the tests' store takes no other key
NUMBERS = count()


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as running:
        yield running


@pytest.fixture
def files(store: ObjectStore) -> str:
    """The URI of a directory in the store that nobody else has."""
    return f"s3://{BUCKET}/files {next(NUMBERS)}"


def put(store: ObjectStore, uri: str, *names: str) -> None:
    for name in names:
        store.put(f"{uri.removeprefix(f's3://{BUCKET}/')}/{name}", name.encode())


def names_of(listing: FileListing) -> list[str]:
    return [file.name for file in listing]


def walked(root: Path) -> set[str]:
    """All files that are not hidden, by Python's own walk."""
    found = set()
    for above, directories, names in os.walk(root):
        directories[:] = [name for name in directories if not name.startswith(("_", "."))]
        found |= {os.path.relpath(os.path.join(above, name), root) for name in names if not name.startswith(("_", "."))}
    return found


def planted(root: Path, names: set[str]) -> None:
    for name in names:
        file = root / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(name.encode())
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # a file and a directory of one name cannot both be


@given(st.sets(NAMES, max_size=12), st.integers(1, 4))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_disk_is_listed_as_python_walks_it(tmp_path: Path, names: set[str], page_size: int) -> None:
    root = tmp_path / str(next(NUMBERS))
    root.mkdir()
    planted(root, names)
    listing = FileListing(str(root), page_size=page_size)
    pages = list(listing.pages())
    found = [file for page in pages for file in page]
    assert sorted(file.name for file in found) == sorted(walked(root))
    assert [(file.size, file.problem) for file in found] == [(len(file.name.encode()), None) for file in found]
    assert [len(page) for page in pages[:-1]] == [page_size] * (len(pages) - 1)


def kept(names: set[str], prefix: str = "", start_after: str = "") -> list[str]:
    """What a listing has to say of those keys, in the order of a store."""
    shown = [one for one in names if not any(part.startswith(("_", ".")) for part in one.split("/"))]
    meant = [one for one in shown if one.startswith(prefix) and one.encode() > start_after.encode()]
    return sorted(meant, key=str.encode)


@given(st.sets(IN_STORE, max_size=8), IN_STORE | st.just(""), st.sampled_from(["", "a", "a/", "k="]), st.integers(1, 3))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_store_is_listed_in_the_order_of_names_from_anywhere(
    store: ObjectStore, names: set[str], start_after: str, prefix: str, page_size: int
) -> None:
    uri = f"s3://{BUCKET}/random {next(NUMBERS)}"
    put(store, uri, *names)
    listing = FileListing(uri, store.options, only=FileFilter(prefix), start_after=start_after, page_size=page_size)
    assert names_of(listing) == kept(names, prefix, start_after)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_is_exact_everywhere(store: ObjectStore, files: str, tmp_path: Path, name: str) -> None:
    odd = f"{name}/{name}.csv"
    planted(tmp_path, {odd})
    fsspec.filesystem("memory").pipe(f"/exact{tmp_path}/{odd}", b"1")
    roots: list[tuple[str, dict[str, Any]]] = [(str(tmp_path), {}), (f"memory://exact{tmp_path}", {})]
    if "\n" not in name:
        put(store, files, odd)
        roots.append((files, store.options))
    for root, options in roots:
        (file,) = FileListing(root, options)
        assert file.name == odd
        assert names_of(FileListing(root, options, only=FileFilter(f"{name}/"))) == [odd]
        assert names_of(FileListing(root, options, start_after=odd)) == []


def test_a_file_has_its_size_its_time_and_the_stores_mark(store: ObjectStore, files: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"12345")
    os.utime(tmp_path / "a.csv", (0, 1_700_000_000.125))
    (local,) = FileListing(str(tmp_path))
    assert (local.size, local.etag, local.version) == (5, "", "")
    assert local.modified_at == datetime(2023, 11, 14, 22, 13, 20, 125_000, tzinfo=UTC)
    put(store, files, "a.csv")
    (remote,) = FileListing(files, store.options)
    key = f"{files.removeprefix(f's3://{BUCKET}/')}/a.csv"
    there = store.client.head_object(Bucket=BUCKET, Key=key)
    assert (remote.size, remote.etag) == (5, there["ETag"].strip('"'))
    assert remote.modified_at.utcoffset() == timedelta(0)
    assert abs(remote.modified_at - there["LastModified"]) < timedelta(seconds=1)


def test_looks_for_files_of_pipes_meet_an_earlier_name_after_their_time_for_all_names(
    store: ObjectStore, files: str
) -> None:
    looks = Listings()

    def seen(full_after: float) -> list[str]:
        found: list[str] = looks.files(files, "", store.options, full_after=full_after)["file"].to_pylist()
        return found

    put(store, files, "b.csv")
    assert seen(60) == ["b.csv"]
    put(store, files, "a.csv", "c.csv")
    assert seen(60) == ["b.csv", "c.csv"]
    assert seen(0) == ["a.csv", "b.csv", "c.csv"]


def test_requests_are_the_pages_that_are_needed(store: ObjectStore, files: str) -> None:
    names = [f"day={day}/{number:02}.csv" for day in (1, 2, 3) for number in range(10)]
    put(store, files, *names)
    listing = FileListing(files, store.options, page_size=10)
    pages = listing.pages()
    assert [file.name for file in next(pages)] == names[:10]
    assert listing.requests == 1  # nothing is asked ahead
    assert [file.name for page in pages for file in page] == names[10:]
    assert listing.requests == 3
    for only, needed in ((FileFilter("day=2/"), 1), (FileFilter(glob="day=3/*.csv"), 1), (FileFilter(regex=".*"), 3)):
        narrow = FileListing(files, store.options, only=only, page_size=10)
        assert names_of(narrow) == [name for name in names if only.accepts(name)]
        assert narrow.requests == needed
    later = FileListing(files, store.options, start_after=names[24], page_size=10)
    assert names_of(later) == names[25:]
    assert later.requests == 1


def test_a_hidden_directory_costs_no_more_than_a_request(store: ObjectStore, files: str) -> None:
    hidden = [f"a/_delta_log/{number:02}.json" for number in range(40)]
    put(store, files, "a/1.csv", *hidden, "a/_delta_log0.csv", "a/_delta_log1", "a/b.csv", "z/.tmp/1", "z/2.csv")
    listing = FileListing(files, store.options, page_size=10)
    assert names_of(listing) == ["a/1.csv", "a/b.csv", "z/2.csv"]
    assert listing.requests == 2


def test_an_object_that_stands_for_a_directory_is_no_file(store: ObjectStore, files: str) -> None:
    put(store, files, "", "a/", "a/1.csv", "a//2.csv")
    put(store, f"{files}er", "another directory's.csv")
    assert names_of(FileListing(files, store.options)) == ["a//2.csv", "a/1.csv"]
    assert names_of(FileListing(f"s3://{BUCKET}/nothing here", store.options)) == []
    inside = f"{files.removeprefix(f's3://{BUCKET}/')}/"
    whole_bucket = FileListing(f"s3://{BUCKET}", store.options, only=FileFilter(inside))
    assert names_of(whole_bucket) == [f"{inside}a//2.csv", f"{inside}a/1.csv"]


def test_patterns_are_of_the_shell_or_regular_expressions(tmp_path: Path) -> None:
    planted(tmp_path, {"a/1.csv", "a/2.json", "b/1.csv", "two\nlines.csv", "_a/1.csv", "a/.1.csv"})

    def found(**only: Any) -> list[str]:
        return sorted(names_of(FileListing(str(tmp_path), only=FileFilter(**only))))

    assert found(glob="*.csv") == ["a/1.csv", "b/1.csv", "two\nlines.csv"]
    assert found(glob="[ab]/?.csv") == ["a/1.csv", "b/1.csv"]
    assert found(regex=r".*[.]csv") == found(glob="*.csv")
    assert found(regex="1") == []  # the whole name
    assert found(prefix="a/", regex=r".*/\d[.](csv|json)") == ["a/1.csv", "a/2.json"]
    assert found(prefix="_a/") == []
    with pytest.raises(InvalidArgument, match="not a regular expression"):
        FileFilter(regex="(")
    with pytest.raises(InvalidArgument, match="not both"):
        FileFilter(glob="*", regex=".*")
    with pytest.raises(InvalidArgument, match=f"1 to {MOST_IN_PAGE}"):
        FileListing(str(tmp_path), page_size=MOST_IN_PAGE + 1)


def test_a_file_that_hadoop_still_copies_is_no_file_yet(tmp_path: Path) -> None:
    """Spark skips it, so a load of it would have no row."""
    planted(tmp_path, {"a.csv", "b.csv._COPYING_", "c._COPYING_/d.csv", "e._COPYING_.csv"})
    assert sorted(names_of(FileListing(str(tmp_path)))) == ["a.csv", "e._COPYING_.csv"]


def test_a_disk_is_looked_at_no_further_than_somebody_asks(tmp_path: Path) -> None:
    planted(tmp_path, {f"{directory}/{number}" for directory in range(5) for number in range(2)})
    (tmp_path / "_hidden" / "deep").mkdir(parents=True)
    listing = FileListing(str(tmp_path), page_size=2)
    pages = listing.pages()
    next(pages)
    assert listing.requests == 2  # the root, and one directory in it
    assert len(list(pages)) == 4
    assert listing.requests == 6
    narrow = FileListing(str(tmp_path), only=FileFilter("3/"))
    assert len(names_of(narrow)) == 2
    assert narrow.requests == 2


def test_pipes_and_links_that_lead_nowhere_are_named_and_links_to_directories_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.csv").write_text("x")
    (root / "1.csv").write_text("12345")
    (root / "linked.csv").symlink_to(root / "1.csv")
    os.mkfifo(root / "pipe.csv")
    (root / "device.csv").symlink_to("/dev/zero")
    (root / "nowhere.csv").symlink_to(root / "gone")
    (root / "loop.csv").symlink_to("loop.csv")
    (root / "directory").symlink_to(tmp_path / "outside")
    (root / "myself").symlink_to(root)
    os.mkfifo(root / "_pipe.csv")
    found = {file.name: (file.size, file.problem) for file in FileListing(str(root))}
    assert found == {
        "1.csv": (5, None),
        "linked.csv": (5, None),
        "pipe.csv": (0, "it is a named pipe"),
        "device.csv": (0, "it is a device"),
        "nowhere.csv": (0, "it is a link that leads nowhere"),
        "loop.csv": (0, "it is a link that leads nowhere"),
    }


def test_what_goes_while_it_is_listed_is_no_error(tmp_path: Path) -> None:
    planted(tmp_path, {f"{directory}/{number}" for directory in range(3) for number in range(3)})
    pages = FileListing(str(tmp_path), page_size=1).pages()
    (first,) = next(pages)
    for directory in tmp_path.iterdir():
        shutil.rmtree(directory)
    assert len(list(pages)) <= 2  # the rest of the directory that was open
    assert first.name.count("/") == 1


def test_a_directory_that_does_not_exist_is_none(store: ObjectStore, tmp_path: Path) -> None:
    for place, options in (
        (str(tmp_path / "gone"), {}),
        (f"memory://gone{tmp_path}", {}),
        ("s3://no-such-bucket/x", store.options),
    ):
        with pytest.raises(FileNotFoundError):
            names_of(FileListing(place, options))
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError):
        names_of(FileListing(str(tmp_path / "file")))


def test_any_other_storage_is_listed_whole_by_directories(tmp_path: Path) -> None:
    memory, root = fsspec.filesystem("memory"), f"/elsewhere{tmp_path}"
    for name in ("a/1.csv", "a/b/2.csv", "c/3.csv", "_x/4.csv", "a/.y/5.csv", "6.csv"):
        memory.pipe(f"{root}/{name}", name.encode())
    listing = FileListing(f"memory:/{root}")
    assert sorted((file.name, file.size) for file in listing) == [
        ("6.csv", 5), ("a/1.csv", 7), ("a/b/2.csv", 9), ("c/3.csv", 7)
    ]  # fmt: skip
    assert (listing.requests, listing.sorted_by_name) == (4, False)
    assert {file.modified_at.utcoffset() for file in listing} == {timedelta(0)}
    later = FileListing(f"memory:/{root}", start_after="a/1.csv", only=FileFilter(glob="a/*"))
    assert (names_of(later), later.requests) == (["a/b/2.csv"], 3)


def test_a_store_that_hangs_or_refuses_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        hangs = FileListing("s3://lake/t", {"key": "k", "secret": "of-mine", "endpoint_url": endpoint, **IMPATIENT})
        with pytest.raises(StorageUnreachable) as raised:
            names_of(hangs)
    assert raised.value.facts["place"] == "s3://lake/t"
    assert "of-mine" not in str(raised.value)


def test_a_directory_that_may_not_be_read_is_an_error() -> None:
    with TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        Path(root, "shut").mkdir(mode=0)
        with _nobody(), pytest.raises(StorageRefused, match="shut"):
            names_of(FileListing(root))
        Path(root, "shut").rename(Path(root, "_shut"))
        with _nobody():
            assert names_of(FileListing(root)) == []


@contextmanager
def _nobody() -> Iterator[None]:
    """Root may read every directory."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


class _Answering(BaseHTTPRequestHandler):
    """A page of names that the tests' store cannot hold, in the form of S3; the same whatever is asked."""

    keys: tuple[str, ...] = ("t/%01%0D", "t/two%0Alines.csv")
    truncated = "false"

    def do_GET(self) -> None:
        assert "encoding-type=url" in self.path
        keys = "".join(
            f"<Contents><Key>{key}</Key><Size>1</Size><ETag>&quot;e&quot;</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in self.keys
        )
        more = f"<IsTruncated>{self.truncated}</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
        body = f"<ListBucketResult><EncodingType>url</EncodingType>{more}{keys}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class _Unsorted(_Answering):
    keys = ("t/_x/1",)
    truncated = "true"


@contextmanager
def _answering(kind: type[_Answering]) -> Iterator[FileListing]:
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        yield FileListing("s3://lake/t", {"key": "k", "secret": "s", "endpoint_url": endpoint})
        server.shutdown()


def test_a_key_with_a_newline_is_exact() -> None:
    with _answering(_Answering) as listing:
        found = list(listing)
    assert [(file.name, file.etag) for file in found] == [("\x01\r", "e"), ("two\nlines.csv", "e")]


def test_a_store_that_begins_anew_for_ever_is_an_error() -> None:
    with _answering(_Unsorted) as listing, pytest.raises(StorageUnreachable, match="in order"):
        list(listing)
