"""The how-to page says the settings that are tested."""

from __future__ import annotations

from pathlib import Path

from tidemark.model.spark import S3_SETTINGS

PAGE = Path(__file__).parents[2] / "provider" / "docs" / "how-to" / "use-an-object-store.md"


def test_the_page_has_the_settings_that_are_tested() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [value for value in S3_SETTINGS.values() if value not in text] == []
