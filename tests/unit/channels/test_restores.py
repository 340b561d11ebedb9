"""Readers of tokens see a RESTORE that no committer has seen yet, and look no further than the last committer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from tests.unit.channels.specs import PROTOCOL, metadata
from tidemark.channels.model.channels import WATCH_DOMAIN, IngestWatch
from tidemark.channels.planning.names import domain_of
from tidemark.channels.planning.records import opened, record_text, watch_text
from tidemark.channels.planning.restores import records_now
from tidemark.errors import LogIncomplete
from tidemark.model.table_log import TableState

FIRST = opened(None, "id-1", by="app", token=None, now=datetime(2026, 1, 1, tzinfo=UTC))
CHANNEL = {"operation": "STREAMING UPDATE", "engineInfo": "Kernel-4.4.0/Tidemark"}
INSERT = {"operation": "WRITE", "engineInfo": "Apache-Spark/4.1.1 Delta-Lake/4.4.0"}


def restore(to: int) -> dict[str, Any]:
    return {"operation": "RESTORE", "operationParameters": {"version": str(to), "timestamp": None}}


@dataclass
class Log:
    """Commits by version; each of a channel gives it the token of its version."""

    commits: list[dict[str, Any]]
    watched_to: int = 0
    read: list[int] = field(default_factory=list)

    def state(self, version: int | None = None) -> TableState:
        at = len(self.commits) - 1 if version is None else version
        token = next((str(one) for one in range(at, -1, -1) if self.commits[one] is CHANNEL), None)
        domains = {
            domain_of("C"): record_text(replace(FIRST, offset_token=token)),
            WATCH_DOMAIN: watch_text(IngestWatch("id-1", min(self.watched_to, at))),
        }
        return TableState(at, metadata(), PROTOCOL, None, domains=domains)

    def commit_infos(self, after: int, through: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for version in range(after + 1, through + 1):
            self.read.append(version)
            yield version, self.commits[version]

    def has_commit(self, version: int) -> bool:
        return 0 <= version < len(self.commits)

    def earliest(self) -> int:
        return 0


def seen(log: Log) -> tuple[str | None, str | None]:
    record = records_now(log)["C"]
    return record.offset_token, record.problem


def test_a_restore_that_nobody_has_seen_takes_the_token_back() -> None:
    reason = "version 3 restored the table to version 1."
    assert seen(Log([CHANNEL, CHANNEL, CHANNEL, restore(1), INSERT])) == ("1", reason)


def test_of_several_restores_the_latest_counts_and_leads_through_the_earlier() -> None:
    """Version 3 has the rows of version 1, and the domains of version 2."""
    log = Log([CHANNEL, CHANNEL, CHANNEL, restore(1), restore(3)])
    assert seen(log) == ("1", "version 4 restored the table to version 3.")


def test_the_search_ends_at_the_last_commit_of_a_channel_and_at_the_watch() -> None:
    log = Log([CHANNEL, restore(0), CHANNEL, INSERT])
    assert (seen(log), log.read) == (("2", None), [3, 2])
    watched = Log([CHANNEL, restore(0), INSERT, INSERT], watched_to=2)
    assert (seen(watched), watched.read) == (("0", None), [3])


def test_the_search_has_an_end_in_a_long_log_and_passes_over_what_was_cleaned_up() -> None:
    long = Log([CHANNEL, restore(0), *[INSERT] * 500])
    assert (seen(long), len(long.read)) == (("0", None), 100)

    class Cleaned(Log):
        def commit_infos(self, after: int, through: int) -> Iterator[tuple[int, dict[str, Any]]]:
            raise LogIncomplete(path="t", version=through, start=after)

    assert seen(Cleaned([CHANNEL, INSERT])) == ("0", None)
