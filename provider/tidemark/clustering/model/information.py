"""The state of a table's clustering, in the form of the source system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ClusteringInformation", "FailedRecluster"]


@dataclass(frozen=True)
class FailedRecluster:
    """An attempt to recluster the table that failed. `timestamp`: ISO 8601, in UTC."""

    timestamp: str
    error: str


@dataclass(frozen=True)
class ClusteringInformation:
    """SYSTEM$CLUSTERING_INFORMATION by its names there. A file of the table counts as a partition.

    `average_overlaps`: how many other files a file overlaps. `average_depth`: the mean of the files' depths. A file's
    depth is the largest number of files, itself included, that overlap each other with it. `partition_depth_histogram`:
    files by depth, from "00000" to "00016", then in buckets that double. `version`: of the table.
    """

    cluster_by_keys: str
    notes: str
    total_partition_count: int
    total_constant_partition_count: int
    average_overlaps: float
    average_depth: float
    partition_depth_histogram: Mapping[str, int]
    clustering_errors: tuple[FailedRecluster, ...]
    version: int

    def to_plain(self) -> dict[str, Any]:
        """The JSON object of the source system; `notes` only if there are any."""
        notes = {"notes": self.notes} if self.notes else {}
        return {
            "cluster_by_keys": self.cluster_by_keys,
            **notes,
            "total_partition_count": self.total_partition_count,
            "total_constant_partition_count": self.total_constant_partition_count,
            "average_overlaps": self.average_overlaps,
            "average_depth": self.average_depth,
            "partition_depth_histogram": dict(self.partition_depth_histogram),
            "clustering_errors": [{"timestamp": one.timestamp, "error": one.error} for one in self.clustering_errors],
        }
