"""A table that is gone from its path is looked for in every place of a large schema (R90)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import singers
from tidemark.errors import SourceCopied, SourceMoved, TableNotFound
from tidemark.lake.moved import Finder, below_the_root, beside, open_registered
from tidemark.lake.tables import table_ref
from tidemark.model.streams import TableRef

MANY = 1_200


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake whose schema `db` has many tables; none of them has a commit."""
    root = tmp_path_factory.mktemp("lake")
    for number in range(MANY):
        (root / "db" / f"m{number:04d}" / "_delta_log").mkdir(parents=True)
    return root


@pytest.fixture
def gone(large: Path) -> TableRef:
    """A table of the schema whose directory is the last one by now."""
    place = singers(large, "db.t")
    ref = table_ref("db.t", str(large))
    shutil.rmtree(large / "db" / "zz", ignore_errors=True)
    shutil.rmtree(large / "db" / "a", ignore_errors=True)
    place.rename(large / "db" / "zz")
    return ref


def finders(large: Path) -> dict[str, Finder]:
    return {"beside": beside(), "below the root": below_the_root(str(large))}


@pytest.mark.parametrize("way", ["beside", "below the root"])
def test_R90_a_table_behind_very_many_others_is_found(large: Path, gone: TableRef, way: str) -> None:
    with pytest.raises(SourceMoved) as moved:
        open_registered(gone, [finders(large)[way]])
    assert (moved.value.to.name, moved.value.to.path) == ("db.zz", f"file://{large}/db/zz")


@pytest.mark.parametrize("way", ["beside", "below the root"])
def test_a_copy_behind_very_many_others_is_seen(large: Path, gone: TableRef, way: str) -> None:
    shutil.copytree(large / "db" / "zz", large / "db" / "a")
    with pytest.raises(SourceCopied, match=r"db/a, .*db/zz: choose one"):
        open_registered(gone, [finders(large)[way]])


def test_a_table_that_no_place_has_is_not_found(large: Path, gone: TableRef) -> None:
    shutil.rmtree(large / "db" / "zz")
    with pytest.raises(TableNotFound) as error:
        open_registered(gone, list(finders(large).values()))
    assert type(error.value) is TableNotFound
