"""The shared parts of commands that act: who acts and why, what would be done, and whether it was meant."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING

from airflow.cli.cli_config import Arg

if TYPE_CHECKING:
    from tidemark.control.store import ControlStore
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.replication.model.replication import Actor
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["DRY_RUN", "IF_EXISTS", "WHY", "by_me", "confirm", "runtime_of", "store_of"]

WHY = Arg(("--why",), help="A reason, which the history keeps", default="", metavar="TEXT")  # type: ignore[no-untyped-call]
DRY_RUN = Arg(  # type: ignore[no-untyped-call]
    ("--dry-run",), help="Check everything and show what would be done; do nothing", action="store_true"
)
IF_EXISTS = Arg(  # type: ignore[no-untyped-call]
    ("--if-exists",), help="Do not fail if it does not exist, so a second run is fine", action="store_true"
)


def by_me(why: str = "") -> Actor:
    """The person at the command line."""
    from tidemark.replication.model.replication import Actor

    return Actor(who=getpass.getuser(), why=why)


def store_of(hook: TidemarkHook, *, dry_run: bool) -> ControlStore:
    """The store to act on; for a dry run one that answers in the same way and keeps nothing."""
    store = hook.open_store()
    return store.rehearsal() if dry_run else store


def runtime_of(hook: TidemarkHook) -> Runtime:
    """The runtime through which a command that runs a job acts. Raises SparkNotFound if no job could be run."""
    from tidemark.hooks.cluster_runtime import on_its_cluster
    from tidemark.hooks.spark_job import SparkJob

    job = SparkJob(hook.settings)
    job.require_ready()
    return on_its_cluster(hook.runtime(job.run), job)


def confirm(question: str, *, yes: bool) -> None:
    """Ask on standard error, so that the output stays whole. Raises SystemExit unless the answer is yes."""
    if yes:
        return
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    try:
        answer = input()
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise SystemExit("Nothing was done, as nobody confirmed it; `--yes` confirms without a question.")
