"""Errors of clustered tables."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "ClusteredTableRecreated",
    "ClusteringError",
    "ClusteringKeyMissing",
    "ClusteringKeyRefused",
    "ReclusteringsFailed",
]


class ClusteringError(TidemarkError):
    """{message}"""


class ClusteringKeyMissing(ClusteringError):
    """{table} has no clustering key. Give it one: ALTER TABLE {table} CLUSTER BY (column, …). To ask about other
    columns, name them.
    """


class ClusteringKeyRefused(ClusteringError):
    """{table} cannot be clustered by {key}: {problem}"""


class ClusteredTableRecreated(ClusteringError):
    """{table} at {path} is another table than the one that is kept clustered: its id is {found}, and {expected} was
    registered. To give it a key of its own, run ALTER TABLE {table} CLUSTER BY (column, …). To end the upkeep, run
    ALTER TABLE {table} DROP CLUSTERING KEY.
    """


class ReclusteringsFailed(ClusteringError):
    """{failed} of {total} tables could not be reclustered; the others are done. Remove the causes, then run the
    task again. {problems}
    """
