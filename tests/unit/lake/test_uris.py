"""One form for a place, whatever letters are in it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lake.delta_directories import born
from tidemark.errors import TableNotFound
from tidemark.lake.paths import file_uri, is_absolute
from tidemark.lake.storage import Storage, canonical_uri
from tidemark.lake.tables import resolve, table_ref
from tidemark.model.streams import Addressing

NAMES = st.text(
    st.characters(exclude_characters="/\\\0", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20
).filter(lambda name: name not in {".", ".."})


@pytest.mark.parametrize(
    "location", ["/lake/a b", "file:/lake/a b", "file:///lake/a b", "file:///lake/a b/", "/lake//a b"]
)
def test_every_spelling_of_a_local_place_is_one(location: str) -> None:
    assert canonical_uri(location) == "file:///lake/a b"


def test_other_schemes_keep_theirs() -> None:
    assert canonical_uri("S3://bucket/key/") == "s3://bucket/key"


@given(directory=NAMES, name=NAMES)
def test_a_data_file_is_found_whatever_its_name(
    tmp_path_factory: pytest.TempPathFactory, directory: str, name: str
) -> None:
    root = tmp_path_factory.mktemp("place")
    if len(directory.encode()) > 200 or len(name.encode()) > 200:
        return
    file = root / directory / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"here")
    storage = Storage(str(root / directory))
    assert storage.read_bytes(file_uri(storage.uri, quote(name))) == b"here"
    assert storage.names() == [name]


def test_a_colon_in_the_name_of_a_file_is_no_scheme(tmp_path: Path) -> None:
    (tmp_path / "orders:1.json").write_bytes(b"here")
    storage = Storage(str(tmp_path))
    assert storage.read_bytes("orders:1.json") == b"here"
    assert [storage.stored_file(file.name) for file in storage.files_below()] == list(storage.files_below())


def test_absolute_paths_of_a_log_stay() -> None:
    assert file_uri("file:///t", "s3://b/x%20y") == "s3://b/x%20y"
    assert file_uri("file:///t", "/x%20y") == "file:///x%20y"
    assert is_absolute("file:/x")
    assert is_absolute("/x")
    assert not is_absolute("a:b.parquet")
    assert not is_absolute("p=a:b/x.parquet")


def test_a_name_leads_below_the_lake_root(tmp_path: Path) -> None:
    born(tmp_path / "shop" / "orders")
    assert resolve("shop.orders", str(tmp_path)) == (f"file://{tmp_path}/shop/orders", Addressing.LAKE)
    assert resolve(f"delta.`{tmp_path}/shop/orders`", "/elsewhere") == (
        f"file://{tmp_path}/shop/orders",
        Addressing.PATH,
    )
    assert table_ref("shop.orders", str(tmp_path)).table_id == "id-1"
    with pytest.raises(TableNotFound):
        resolve("shop.customers", str(tmp_path))
