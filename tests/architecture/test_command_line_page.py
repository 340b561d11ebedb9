"""The page of the command line names each command with each of its options, and none that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported

assert HOME
PAGE = Path(__file__).parents[2] / "provider" / "docs" / "reference" / "command-line.md"
SHARED = {"--conn-id", "--output", "--verbose"}


def commands() -> Iterator[tuple[str, str, set[str]]]:
    """Group, name and long options of each."""
    from tidemark.cli import get_tidemark_cli_commands

    tidemark: Any = get_tidemark_cli_commands()[0]
    for group in tidemark.subcommands:
        for name, command in _named(getattr(group, "subcommands", [group])):
            flags = {flag for one in command.args for flag in one.flags if flag.startswith("--")}
            yield group.name, name, flags - SHARED


def _named(subcommands: Any) -> Iterator[tuple[str, Any]]:
    """Commands of a group, and those of groups within it: `tokens add`."""
    for command in subcommands:
        for name, inner in _named(command.subcommands) if hasattr(command, "subcommands") else ():
            yield f"{command.name} {name}", inner
        if not hasattr(command, "subcommands"):
            yield command.name, command


@pytest.mark.airflow
def test_the_page_has_every_command_with_its_options() -> None:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    told = {
        (section.split("\n", 1)[0], name): set(re.findall(r"--[a-z-]+", row))
        for section in sections
        for row, name in re.findall(r"^(\| `((?:tokens )?[a-z-]+)[^\n]*)$", section, re.MULTILINE)
    }
    assert told == {(group, name): flags for group, name, flags in commands()}
