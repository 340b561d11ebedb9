"""Each room has the same five words, and what is known by name exists."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import tidemark
from tests.architecture.rooms import ROOMS, WORDS
from tidemark.control.history import DROPPED_BY
from tidemark.control.object_kinds import KINDS, kind_named
from tidemark.control.schema import SUBJECTS

PACKAGE = Path(tidemark.__file__).parent


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_has_only_the_words(room: str) -> None:
    found = {file.stem for file in (PACKAGE / room).iterdir() if not file.name.startswith("__")}
    assert found
    assert found <= ROOMS[room]


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_floor_with_one_file_is_that_file(room: str) -> None:
    floors = [floor for floor in (PACKAGE / room).iterdir() if floor.is_dir() and floor.name != "__pycache__"]
    alone = [floor.name for floor in floors if len([*floor.rglob("*.py")]) < 3]
    assert alone == []


def test_no_other_package_has_the_floors_of_a_room() -> None:
    floors = [floor for word in ("planning", "worker", "driver") for floor in PACKAGE.glob(f"*/{word}*")]
    assert {floor.parent.name for floor in floors if floor.stem in WORDS} == ROOMS.keys()


def test_the_nouns_of_pipes_are_imported_from_the_model_that_defines_them() -> None:
    models = {f"tidemark.pipes.model.{file.stem}" for file in (PACKAGE / "pipes" / "model").glob("[!_]*.py")}
    nouns = {name for model in models for name in importlib.import_module(model).__all__}
    elsewhere = [
        (file.name, statement.module, alias.name)
        for file in PACKAGE.rglob("*.py")
        for statement in ast.walk(ast.parse(file.read_text()))
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("tidemark.pipes.")
        for alias in statement.names
        if alias.name in nouns and statement.module not in models
    ]
    assert elsewhere == []


def test_the_store_lists_the_tables_of_every_room() -> None:
    found = {f"tidemark.{file.parent.parent.name}.store.schema" for file in PACKAGE.glob("*/store/schema.py")}
    assert found == set(SUBJECTS)


@pytest.mark.parametrize("entry", DROPPED_BY.values())
def test_history_is_dropped_by_functions_that_exist(entry: str) -> None:
    module, _, function = entry.partition(":")
    assert callable(getattr(importlib.import_module(f"tidemark.{module}"), function))


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_objects_are_registered_under_their_own_names(name: str) -> None:
    kind = kind_named(name)
    module, _, function = kind.lags.partition(":")
    assert kind.name == name
    assert callable(getattr(importlib.import_module(f"tidemark.{module}"), function))


def test_every_subject_registers_a_kind_of_objects() -> None:
    """A new subject is a line in `control.object_kinds.KINDS`: page, command line and client then list its objects.

    Answers of queries and runs of jobs are no objects: nobody names one, and there may be thousands.
    """
    registered = {entry.partition(".")[0] for entry in KINDS.values()}
    assert registered == {name.split(".")[1] for name in SUBJECTS} - {"acceleration", "results"}
