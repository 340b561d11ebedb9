"""Each error says what to do: a sentence of its message is a next step, or one of its facts has it."""

from __future__ import annotations

import re
from string import Formatter

import pytest

import tidemark.errors
from tidemark.errors import (
    ActNotOffered,
    ApplicationUnknown,
    CommitConflict,
    CommitRefused,
    EventLogChanged,
    EventUnreadable,
    ImportRefused,
    KernelFailed,
    SubmitRefused,
    TidemarkError,
    TransactionNotFound,
)

STEPS = (
    "Add|Advance|Alter|Ask|Backfill|Begin|Capture|Change|Check|Choose|Clear|Convert|Correct|Create|Declare|Drop|Enable"
    "|Export|Finish|Flush|Give|If|Install|Load|Look|Make|Name|Open|Plan|Point|Raise|Re-base|Read|Rebase|Recover|Recreate|Refresh|Remove"
    "|Repair|Repeat|Request|Reset|Resume|Restore|Rewrite|Roll back|Run|Select|Send|Set|Skip|Take|Try|Use|Wait|Write"
)
STEP = re.compile(
    rf"(?:^|[.;:,)}}] ?)(?:{STEPS})\b|\bretry\b|\btry again\b|\bnext (?:run|wave|flush|backfill)\b", re.IGNORECASE
)
FACTS_WITH_STEPS = {"help", "instead", "message", "remedy"}
IN_THEIR_PROBLEM = {
    "ActFieldsInvalid": "words",
    "ChangeStreamRefused": "problem",
    "ClusteringKeyRefused": "problem",
    "CopyRefused": "problem",
    "InvalidArgument": "problem",
    "KeptViewRefused": "problem",
    "ObjectError": "problem",
    "OutOfRange": "problem",
    "PartitionExpired": "problem",
    "PartitionTokenInvalid": "problem",
    "RebaseRefused": "problem",
    "RecoveryRefused": "problem",
    "RelocationRefused": "problem",
    "ReplicationRefused": "problem",
    "SparkMasterUnfit": "problem",
    "SparkServerUnfit": "problem",
    "SqlCompilationError": "problem",
    "StatementRefused": "problem",
    "StoreUrlInvalid": "problem",
    "Unimplemented": "problem",
}
"""Errors of many reasons, each of which is raised with what to do about it."""

ALL = sorted(
    (one for one in vars(tidemark.errors).values() if isinstance(one, type) and issubclass(one, TidemarkError)),
    key=lambda one: one.__name__,
)


def facts_in(kind: type[TidemarkError]) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(kind.__doc__ or "") if name is not None}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_each_error_has_a_next_step(kind: type[TidemarkError]) -> None:
    text, facts = " ".join((kind.__doc__ or "").split()), facts_in(kind)
    known = IN_THEIR_PROBLEM.get(kind.__name__)
    assert STEP.search(text) or facts & FACTS_WITH_STEPS or known in facts, text


SAID: dict[type[TidemarkError], tuple[dict[str, object], str]] = {
    SubmitRefused: ({"key": "d/r/t", "problem": "it was released"}, "d/r/t .*released.*Run the task again"),
    CommitRefused: ({"key": "d/r/t", "problem": "it is released"}, "d/r/t .*released.*clear the whole group"),
    TransactionNotFound: ({"key": "d/r/t"}, "d/r/t does not exist.*airflow tidemark streams show"),
    EventLogChanged: (
        {"event_log": "s3://b/log", "replication": "shop", "problem": "is gone, with 3 batches"},
        "s3://b/log of replication shop is gone.*Restore event log and control store",
    ),
    EventUnreadable: ({"problem": "KeyError: uuid"}, "KeyError: uuid.*Write the whole file again"),
    KernelFailed: ({"table": "a.b", "problem": "its JVM does not answer"}, "a.b: its JVM.*Try again.*check the table"),
    CommitConflict: ({"table": "a.b", "problem": "version 3 is new"}, "a.b met .*version 3.*Try again"),
    ApplicationUnknown: ({"address": "http://rm", "application": "app_1"}, "http://rm .*app_1.*A retry is safe"),
    ActNotOffered: (
        {"kind": "pipe", "name": "p", "act": "pause", "state": "PAUSED", "offered": "resume"},
        "pipe p .*'pause'.*PAUSED.*Offered: resume.*choose an act",
    ),
    ImportRefused: (
        {"stream": "s", "field": "offset.version", "problem": "it is -1"},
        "Correct it there, or leave it out.*Stream 's', field offset.version: it is -1$",
    ),
}


@pytest.mark.parametrize("kind", SAID, ids=lambda kind: kind.__name__)
def test_the_message_has_what_happened_the_object_and_the_step(kind: type[TidemarkError]) -> None:
    facts, words = SAID[kind]
    assert re.search(words, str(kind(**facts)))
