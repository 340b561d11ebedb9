"""Texts that people hand over, nested more deeply than Python's stack, are refused in our own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemark.errors import DocumentUnreadable, InvalidArgument
from tidemark.hooks.settings import settings_from
from tidemark.streams.planning.stream_document import parse_document

DEEP = "[" * 100_000


def _settings(home: Path, extra: dict[str, Any], **options: str) -> object:
    return settings_from(extra, password=None, options=options, home=home, executor="LocalExecutor")


def test_a_document_of_streams_is_unreadable() -> None:
    with pytest.raises(DocumentUnreadable, match=r"it is not JSON.*nested too deeply"):
        parse_document(DEEP)


@pytest.mark.parametrize("name", ["storage_options", "spark_conf", "driver_environment"])
def test_a_setting_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        _settings(tmp_path, {name: DEEP})


def test_the_home_of_an_unknown_user_is_no_directory_of_jobs(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"jobs_root='~nobody-has-this-name/jobs'.*an absolute path"):
        _settings(tmp_path, {}, jobs_root="~nobody-has-this-name/jobs")
