"""The ways out that are shown to copy: none loses anything as it stands, and none runs with a word to be replaced."""

from __future__ import annotations

import re
import subprocess

import pytest

from tidemark.control.object_acts import acts_of
from tidemark.control.object_kinds import KINDS, Advice, kind_named

LOSING = {"advance", "recover", "drop", "rebase", "recreate", "replay"}
"""Commands after which something may be lost: a form says that first, and an advice names none."""


def advised(kind: str) -> list[str]:
    return [command for one in kind_named(kind).advice.values() for command in one.of("s", "r").commands]


def offered(kind: str) -> list[str]:
    return [command for one in acts_of(kind) for command in Advice("", (one.command,)).of("s", "r").commands]


@pytest.mark.parametrize("kind", KINDS)
def test_no_advised_command_loses_anything(kind: str) -> None:
    assert [command for command in advised(kind) if command.split()[3] in LOSING] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_with_a_word_to_be_replaced_cannot_be_run_as_it_stands(kind: str) -> None:
    commands = [*advised(kind), *offered(kind)]
    assert [one for one in commands if re.search(r" [A-Z_]{3,}( |$)", one)] == []
    for command in commands:
        parsed = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
        assert (parsed.returncode == 0) == ("<" not in command), command


@pytest.mark.parametrize("state", ["nearly_stale", "may_be_stale"])
def test_the_way_out_of_a_stream_that_is_soon_stale_is_its_consumer(state: str) -> None:
    advice = kind_named("stream").advice_for(state, "orders", None)
    assert advice.commands == ("airflow tidemark streams show orders",)
    assert "Run its consumer" in advice.words
