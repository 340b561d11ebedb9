"""The shared parts of commands that act: who acts and why, what would be done, and whether it was meant. Each act is
kept in the histories.
"""

from __future__ import annotations

import functools
import getpass
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.cli.cli_config import Arg
from airflow.utils.cli import action_cli, suppress_logs_and_warning

from tidemark.cli._answers import errors_in_words
from tidemark.errors import InvalidArgument, TidemarkError

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.control.act_fields import Value
    from tidemark.control.command_acts import CommandAct
    from tidemark.control.store import ControlStore
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.replication.model.replication import Actor
    from tidemark.streams.worker.runtime import Runtime

__all__ = [
    "DRY_RUN",
    "IF_EXISTS",
    "WHY",
    "acting",
    "after_the_act",
    "by_me",
    "confirm",
    "kept_by",
    "me",
    "note_done",
    "runtime_of",
    "store_of",
    "why_of",
]

_LONGEST_WHY = 1000  # characters, as on the page
WHY = Arg(("--why",), help="A reason, which the history keeps", default="", metavar="TEXT")  # type: ignore[no-untyped-call]
DRY_RUN = Arg(  # type: ignore[no-untyped-call]
    ("--dry-run",), help="Check everything and show what would be done; do nothing", action="store_true"
)
IF_EXISTS = Arg(  # type: ignore[no-untyped-call]
    ("--if-exists",), help="Do not fail if it does not exist, so a second run is fine", action="store_true"
)


def acting(command: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """A command that changes something. Airflow's audit log has each attempt as `cli_tidemark_act`, with the command as
    it was typed. A metadata database that does not answer keeps nobody from acting.
    """

    @functools.wraps(command)
    def tidemark_act(args: Namespace) -> None:
        with errors_in_words():
            why_of(args)  # before anything is done
        command(args)

    tidemark_act.__name__ = "tidemark_act"  # which the event of the audit log has
    logged: Callable[[Namespace], None] = action_cli(tidemark_act, check_db=False)  # type: ignore[no-untyped-call]
    quiet: Callable[[Namespace], None] = suppress_logs_and_warning(logged)

    @functools.wraps(command)
    def named(args: Namespace) -> None:
        with _a_name_for_airflow():
            quiet(args)

    return named


@contextmanager
def _a_name_for_airflow() -> Iterator[None]:
    """Airflow's audit log refuses a user without a name, as in many containers. So its number is the name here."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = me()
        try:
            yield
        finally:
            del os.environ["LOGNAME"]
    else:
        yield


def me() -> str:
    """The user of the operating system. One without a name, as in many containers, is known by its number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def why_of(args: Namespace) -> str:
    """The reason that was given; empty for none. Raises InvalidArgument for one that no store keeps."""
    why = str(getattr(args, "why", "")).strip()
    if len(why) > _LONGEST_WHY:
        raise InvalidArgument(argument="why", value=f"{why[:50]}…", problem=f"at most {_LONGEST_WHY} characters")
    try:
        why.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(argument="why", value=ascii(why), problem="it is no text in UTF-8") from error
    return why


def by_me(args: Namespace) -> Actor:
    """The person at the command line, with the reason."""
    from tidemark.replication.model.replication import Actor

    return Actor(who=me(), why=why_of(args))


def kept_by(
    store: ControlStore, args: Namespace, kind: str, act: str, *, name: str | None = None, **values: Value | None
) -> ControlStore:
    """The store for the writes of an act, which keep it in the history of acts, as `noting` does."""
    from tidemark.control.command_acts import noting

    return noting(store, _act(args, kind, act, name, values))


@contextmanager
def after_the_act() -> Iterator[None]:
    """The act is done. A failure to keep it in the history is reported on standard error, and costs no answer."""
    try:
        yield
    except TidemarkError as error:
        print(f"The act is done, but the history of acts lacks it: {error}", file=sys.stderr)


def note_done(
    store: ControlStore, args: Namespace, kind: str, act: str, *, uid: str, name: str, **values: Value | None
) -> None:
    """Keep an act that a job has done in the history of acts: within `after_the_act`."""
    from tidemark.control.command_acts import note_act

    note_act(store, _act(args, kind, act, None, values), uid, name)


def _act(args: Namespace, kind: str, act: str, name: str | None, values: dict[str, Value | None]) -> CommandAct:
    from tidemark.control.command_acts import CommandAct

    given = {field: value for field, value in values.items() if value}
    return CommandAct(kind, act, me(), why_of(args), given, name)


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
