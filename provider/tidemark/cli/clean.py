"""`airflow tidemark clean`: what processes that died have left on this host and in the lake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg

from tidemark.cli._acts import acting
from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows
from tidemark.errors import InvalidArgument, StorageRefused, StorageUnreachable, StoreError
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.hooks.settings import TidemarkSettings
    from tidemark.lake.orphans import Swept

__all__ = ["clean_command"]

_KEEP = Arg(  # type: ignore[no-untyped-call]
    ("--keep",), help="Age of the files that are kept, at least 1d (default: 7d)", default="7d", metavar="DAYS"
)
_DRY_RUN = Arg(("--dry-run",), help="Show what would be removed; remove nothing", action="store_true")  # type: ignore[no-untyped-call]
_MOST_ANSWERS = 10_000
_LEAST = timedelta(days=1)  # a job stops itself after 23 hours at the latest, and nobody's clock is an hour off


def clean_command() -> ActionCommand:
    """Removes by hand what workers and drivers remove by and by."""
    return ActionCommand(
        name="clean",
        help="Remove leftovers of dead jobs: their files on this host, their log-only tables and answers in the lake",
        func=clean,
        args=(_KEEP, _DRY_RUN, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
    )


@acting
def clean(args: Namespace) -> None:
    """One row per place: how many were removed, and how many are left with the first reason. Everything that a process
    holds, or that was written within `--keep`, stays. A second run finds nothing to do. Exit code 1 if something should
    be gone and is not.
    """
    with errors_in_words():
        keep, now, hook = _days(args.keep), datetime.now(UTC), TidemarkHook(args.conn_id)
        rows = list(_rows(hook.settings, now, keep, dry_run=args.dry_run))
        rows.append(_answers(hook, now - keep, dry_run=args.dry_run))
    print_rows(rows, args.output)
    if any(row["left"] for row in rows):
        raise SystemExit("Not everything could be removed; the column `problem` has the reasons.")


def _days(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,5})d", text)
    if found is None or timedelta(days=int(found[1])) < _LEAST:
        problem = "it must be a number of days such as 7d, at least 1d: younger files may be those of jobs that run"
        raise InvalidArgument(argument="keep", value=text, problem=problem)
    return timedelta(days=int(found[1]))


def _rows(settings: TidemarkSettings, now: datetime, keep: timedelta, *, dry_run: bool) -> Iterator[dict[str, Any]]:
    from tidemark.hooks._cluster_files import places_of
    from tidemark.hooks._job_files import sweep_archives, sweep_job_files
    from tidemark.lake.orphans import LOG_ONLY

    older_than = now - keep
    for directory in (settings.jobs_root, *settings.former_jobs_roots):
        yield _row("jobs", str(directory), sweep_job_files(directory, now, older_than, dry_run=dry_run))
    for directory in map(_archives, settings.former_jobs_roots):
        yield _row("archives", str(directory), sweep_archives(directory, older_than, dry_run=dry_run))
    jobs, notes = places_of(settings)
    for what, room in (
        ("jobs in a cluster", jobs),
        ("notes of jobs", notes),
        ("log-only tables", f"{settings.workspace}/{LOG_ONLY}"),
    ):
        yield _row(what, room, _swept_in_the_lake(settings, room, older_than, dry_run=dry_run))


def _swept_in_the_lake(settings: TidemarkSettings, room: str, older_than: datetime, *, dry_run: bool) -> Swept:
    """A lake that does not answer is a problem of this row alone."""
    from tidemark.lake.orphans import Swept, sweep_directories

    try:
        return sweep_directories(room, settings.storage_options, older_than=older_than, dry_run=dry_run)
    except (StorageRefused, StorageUnreachable) as error:
        return Swept(left={room: str(error)})


def _answers(hook: TidemarkHook, older_than: datetime, *, dry_run: bool) -> dict[str, Any]:
    """Answers of queries that have ended, and directories of killed runs. A store that cannot be used is a problem of
    this row alone.
    """
    from tidemark.lake.orphans import Swept
    from tidemark.results.worker.cache import ResultCache, sweep, sweep_unused

    settings = hook.settings
    room = f"{settings.workspace}/results"
    try:
        cache = ResultCache(hook.open_store(), settings.workspace, settings.storage_options)
        ended = () if dry_run else sweep(cache, most=_MOST_ANSWERS)
        unused, problem = sweep_unused(cache, older_than, dry_run=dry_run)
    except (StoreError, StorageRefused, StorageUnreachable) as error:
        return _row("answers of queries", room, Swept(left={room: str(error)}))
    return _row("answers of queries", room, Swept((*ended, *unused), {room: problem} if problem else {}))


def _archives(former_jobs_root: Path) -> Path:
    return former_jobs_root.parent / "archives"


def _row(what: str, location: str, swept: Swept) -> dict[str, Any]:
    problem = next((f"{name}: {why}" for name, why in swept.left.items()), None)
    return {
        "what": what,
        "place": location,
        "removed": len(swept.removed),
        "left": len(swept.left),
        "problem": problem,
    }
