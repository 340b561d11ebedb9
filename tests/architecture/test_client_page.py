"""The page of the Python client has everything that a notebook can call, as its source says it."""

from __future__ import annotations

import inspect
import re

import pytest

import tidemark.client
from tests.architecture.anchors import anchors
from tests.architecture.client_page import BETWEEN_MODULES, HANDLES, PAGE, members, public, regions, with_members

TEXT = PAGE.read_text(encoding="utf-8")
ALL = [f"{handle}.{name}" for handle, cls in HANDLES.items() for name in members(cls)]


def test_each_public_member_is_on_the_page_once() -> None:
    shown = [name for region in regions(TEXT) for name in region]
    assert [name for name in public() if name not in shown] == [], "name it in the region of its subject in client.md"
    assert sorted(shown) == sorted(public())


def test_the_page_is_the_one_of_the_source() -> None:
    assert with_members(TEXT) == TEXT, "run `make client-page`"


def test_all_names_of_the_client_have_a_heading() -> None:
    headings = set(re.findall(r"^### (\S+)$", TEXT, re.MULTILINE))
    assert [name for name in tidemark.client.__all__ if name not in headings] == []


@pytest.mark.parametrize("name", ALL)
def test_a_member_has_a_docstring(name: str) -> None:
    handle, _, member = name.partition(".")
    assert inspect.getdoc(inspect.getattr_static(HANDLES[handle], member))


def test_members_that_are_left_out_exist() -> None:
    assert [name for name in BETWEEN_MODULES if name not in ALL] == []


def test_links_within_the_page_lead_to_its_headings() -> None:
    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) <= anchors(PAGE)


def test_a_region_has_signatures_meanings_and_the_classes_that_they_name() -> None:
    made = with_members("<!-- client: lake.version_of tx.key, by make client-page -->\n<!-- end of client -->\n")
    assert "### lake.version_of\n\n```python\ndef version_of(table: str, *, at: Point | None = None" in made
    assert "Raises `TableNotFound`, `VersionNotFound`." in made
    assert "### tx.key\n\n```python\nkey: TransactionKey\n```" in made
    assert re.findall(r"^### (\w+)$", made, re.MULTILINE)[:2] == ["Point", "Version"]
    assert "class Version:\n    version: int" in made
    assert with_members(made) == made


def test_a_class_is_shown_in_the_first_region_that_needs_it() -> None:
    region = "<!-- client: {}, by make client-page -->\n<!-- end of client -->\n"
    made = with_members(region.format("lake.describe_stream") + region.format("lake.show_streams"))
    assert made.count("### StreamDescription") == 1


def test_a_name_that_is_no_member_is_reported() -> None:
    with pytest.raises(AssertionError, match=r"lake\.no_such is no member of Lake"):
        with_members("<!-- client: lake.no_such, by make client-page -->\n<!-- end of client -->")
