"""What all of `airflow tidemark …` promises: connections are found, errors are a line, and each act tells of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.command_line import run_airflow
from tidemark.cli import get_tidemark_cli_commands

pytestmark = pytest.mark.airflow
ACTS = {
    "streams": {"create", "advance", "drop"},
    "replications": {"pause", "resume", "recover", "backfill", "drop"},
    "change-streams": {"suspend", "resume", "backfill", "drop"},
    "consumer-groups": {"pause", "resume", "reset", "drop"},
}


@pytest.fixture
def kept(airflow_home: Path, tmp_path: Path) -> Iterator[str]:
    """A connection in Airflow's metadata database, whose control store is in `tmp_path`."""
    extra = json.dumps({"control_store": f"sqlite:///{tmp_path}/kept.db"})
    run_airflow("connections", "add", "kept_by_airflow", "--conn-type", "tidemark", "--conn-extra", extra)
    yield "kept_by_airflow"
    run_airflow("connections", "delete", "kept_by_airflow")


def test_a_command_finds_the_connections_that_airflow_keeps(kept: str, tmp_path: Path) -> None:
    (checked,) = json.loads(run_airflow("tidemark", "db", "check", "--conn-id", kept, "--output", "json").stdout)
    assert checked["control_store"] == f"sqlite:///{tmp_path}/kept.db"


def test_a_connection_that_is_not_there_is_named_without_a_traceback(airflow_home: Path) -> None:
    failed = run_airflow("tidemark", "replications", "list", "--conn-id", "nobody_made_it")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "`nobody_made_it` isn't defined" in failed.stderr


def acts() -> Iterator[tuple[str, Any]]:
    (tidemark,) = get_tidemark_cli_commands()
    for group in tidemark.subcommands:  # type: ignore[union-attr]
        for command in getattr(group, "subcommands", ()):
            if command.name in ACTS.get(group.name, ()):
                yield group.name, command


def test_every_act_says_what_a_second_run_does_and_can_be_rehearsed() -> None:
    found: dict[str, set[str]] = {}
    for group, command in acts():
        found.setdefault(group, set()).add(command.name)
        assert "a second run" in command.help, command.help
        flags = {flag for one in command.args for flag in one.flags}
        assert {"--dry-run", "--output", "--conn-id"} <= flags, command.name
        loses = command.name in ("drop", "reset", "advance", "recover") or "--overwrite" in flags
        assert loses == ("--yes" in flags)
    assert found == ACTS


@pytest.mark.parametrize(
    "words",
    [
        *(f"{look} x --limit {{}}" for look in ("views history", "clustering history", "search show")),
        *("acceleration list --limit {}", "replications errors x --limit {}", "objects run x y z --map-index {}"),
    ],
)
def test_a_number_that_no_list_can_have_is_refused(
    words: str, airflow_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A negative LIMIT is all rows for SQLite, and an error for PostgreSQL."""
    for bad in ("-1", "99999999999", "x"):
        with pytest.raises(SystemExit) as refused:
            run_airflow("tidemark", *words.format(bad).split())
        assert refused.value.code == 2
        assert "is no whole number from" in capsys.readouterr().err
