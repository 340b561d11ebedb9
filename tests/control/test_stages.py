"""Stages and file formats in the store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidemark.control.store import ControlStore
from tidemark.errors import (
    FileFormatExists,
    FileFormatNotFound,
    InvalidArgument,
    StageExists,
    StageNotFound,
)
from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.planning.formats import file_format
from tidemark.pipes.worker import file_formats, stages

PIPES = file_format("CSV", {"FIELD_DELIMITER": "|", "SKIP_HEADER": 1, "NULL_IF": ["", "NULL"]})
JSON = FileFormat(FileType.JSON)


def test_a_stage_is_found_by_its_name_in_any_case_and_is_kept_as_it_was_given(copied_store: ControlStore) -> None:
    made = stages.create_stage(copied_store, "shop.Raw", "s3a://bucket/raw/", format=PIPES, comment="all")
    assert stages.get_stage(copied_store, "SHOP.raw") == made
    assert (made.name, made.location, made.format, made.format_name) == ("shop.Raw", "s3://bucket/raw", PIPES, None)
    assert stages.find_stage(copied_store, '"shop".raw') is None
    assert stages.create_stage(copied_store, "here", "/data/in/").location == "file:///data/in"


@pytest.mark.parametrize("location", ["", "data/in", "s3://user:pw@bucket/in", "bucket", "/a\nb"])
def test_a_stage_has_an_absolute_location_without_a_password(copied_store: ControlStore, location: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        stages.create_stage(copied_store, "raw", location)
    assert "user:pw" not in str(refused.value)
    assert stages.list_stages(copied_store) == ()


def test_a_second_stage_of_a_name_is_refused_kept_or_takes_its_place(copied_store: ControlStore) -> None:
    made = stages.create_stage(copied_store, "raw", "/data/one")
    with pytest.raises(StageExists):
        stages.create_stage(copied_store, "RAW", "/data/two")
    with pytest.raises(InvalidArgument, match="contradicts"):
        stages.create_stage(copied_store, "raw", "/data/two", or_replace=True, if_not_exists=True)
    assert stages.create_stage(copied_store, "RAW", "/data/two", if_not_exists=True) == made
    for _ in range(2):
        replaced = stages.create_stage(copied_store, "RAW", "/data/two", format=JSON, or_replace=True)
        assert replaced == replace(made, name="RAW", location="file:///data/two", format=JSON)
        assert stages.get_stage(copied_store, "raw") == replaced


def test_a_stage_names_a_format_that_exists_or_has_its_own(copied_store: ControlStore) -> None:
    with pytest.raises(FileFormatNotFound, match="no file format pipes"):
        stages.create_stage(copied_store, "raw", "/data", format_name="pipes")
    file_formats.create_file_format(copied_store, "pipes", PIPES)
    assert stages.create_stage(copied_store, "raw", "/data", format_name="PIPES").format_name == "PIPES"
    with pytest.raises(InvalidArgument, match="not both"):
        stages.alter_stage(copied_store, "raw", format=JSON, format_name="pipes")
    assert stages.get_stage(copied_store, "raw").format_name == "PIPES"


def test_a_stage_changes_in_the_parts_that_are_given(copied_store: ControlStore) -> None:
    file_formats.create_file_format(copied_store, "pipes", PIPES)
    made = stages.create_stage(copied_store, "raw", "/data", format_name="pipes", comment="all")
    expected = made
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"location": "s3://b/x/"}, {"location": "s3://b/x"}),
        ({"format": JSON}, {"format": JSON, "format_name": None}),
        ({"format_name": "pipes"}, {"format": None, "format_name": "pipes"}),
        ({"comment": ""}, {"comment": None}),
        ({}, {}),
    ]
    for change, said in changes:
        expected = replace(expected, **said)
        for _ in range(2):
            assert stages.alter_stage(copied_store, "raw", **change) == expected
            assert stages.get_stage(copied_store, "raw") == expected
    stages.create_stage(copied_store, "other", "/data")
    with pytest.raises(StageExists):
        stages.alter_stage(copied_store, "raw", rename_to="OTHER")
    assert stages.alter_stage(copied_store, "raw", rename_to="RAW") == replace(expected, name="RAW")
    stages.alter_stage(copied_store, "raw", rename_to="shop.raw")
    assert [one.name for one in stages.list_stages(copied_store)] == ["other", "shop.raw"]
    assert stages.alter_stage(copied_store, "raw", comment="x", if_exists=True) is None
    with pytest.raises(StageNotFound, match="These exist: "):
        stages.alter_stage(copied_store, "raw", comment="x")


def test_a_stage_whose_format_was_dropped_moves_and_is_refused_another_format_that_is_gone(
    copied_store: ControlStore,
) -> None:
    file_formats.create_file_format(copied_store, "pipes", PIPES)
    stages.create_stage(copied_store, "raw", "/data", format_name="pipes")
    file_formats.drop_file_format(copied_store, "pipes")
    moved = stages.alter_stage(copied_store, "raw", location="/other")
    assert moved is not None
    assert (moved.location, moved.format_name) == ("file:///other", "pipes")
    with pytest.raises(FileFormatNotFound):
        stages.alter_stage(copied_store, "raw", location="/third", format_name="pipes")
    assert stages.get_stage(copied_store, "raw") == moved
    with pytest.raises(FileFormatNotFound):
        stages.create_stage(copied_store, "raw", "/third", format_name="pipes", or_replace=True)
    assert stages.create_stage(copied_store, "raw", "/x", format_name="gone", if_not_exists=True) == moved


def test_a_dropped_stage_frees_its_name(copied_store: ControlStore) -> None:
    made = stages.create_stage(copied_store, "raw", "/data")
    assert stages.drop_stage(copied_store, "RAW") == made
    assert stages.drop_stage(copied_store, "raw", if_exists=True) is None
    with pytest.raises(StageNotFound, match="CREATE STAGE"):
        stages.drop_stage(copied_store, "raw")
    assert stages.create_stage(copied_store, "raw", "/data").uid != made.uid


def test_stages_and_formats_are_listed_by_a_pattern(copied_store: ControlStore) -> None:
    for name in ("b.raw", "a.Raw_2", "raw_in"):
        stages.create_stage(copied_store, name, "/data")
        file_formats.create_file_format(copied_store, name, JSON)
    assert [one.name for one in stages.list_stages(copied_store, "RAW\\__%")] == ["a.Raw_2", "raw_in"]
    assert [one.name for one in file_formats.list_file_formats(copied_store, "%IN")] == ["raw_in"]
    assert len(file_formats.list_file_formats(copied_store)) == 3


def test_a_format_is_kept_with_its_options_and_changes_in_those_that_are_given(copied_store: ControlStore) -> None:
    made = file_formats.create_file_format(copied_store, "shop.pipes", PIPES, comment="old")
    assert file_formats.get_file_format(copied_store, "SHOP.PIPES") == made
    changed = file_formats.alter_file_format(copied_store, "shop.pipes", options={"skip_header": 2}, comment="new")
    options = {**PIPES.options, "SKIP_HEADER": 2}
    assert changed == replace(made, format=FileFormat(FileType.CSV, options), comment="new")
    assert file_formats.get_file_format(copied_store, "shop.pipes") == changed
    with pytest.raises(InvalidArgument, match="no such option"):
        file_formats.alter_file_format(copied_store, "shop.pipes", options={"STRIP_OUTER_ARRAY": True})
    assert file_formats.alter_file_format(copied_store, "x", comment="y", if_exists=True) is None


def test_a_second_format_of_a_name_is_refused_kept_or_takes_its_place(copied_store: ControlStore) -> None:
    made = file_formats.create_file_format(copied_store, "f", PIPES)
    with pytest.raises(FileFormatExists):
        file_formats.create_file_format(copied_store, "F", JSON)
    assert file_formats.create_file_format(copied_store, "F", JSON, if_not_exists=True) == made
    replaced = file_formats.create_file_format(copied_store, "F", JSON, or_replace=True)
    assert file_formats.find_file_format(copied_store, "f") == replaced == replace(made, name="F", format=JSON)
    file_formats.create_file_format(copied_store, "g", JSON)
    with pytest.raises(FileFormatExists):
        file_formats.alter_file_format(copied_store, "g", rename_to="f")
    assert file_formats.drop_file_format(copied_store, "f") == replaced
    assert file_formats.drop_file_format(copied_store, "f", if_exists=True) is None
    with pytest.raises(FileFormatNotFound, match="These exist: g"):
        file_formats.drop_file_format(copied_store, "f")
