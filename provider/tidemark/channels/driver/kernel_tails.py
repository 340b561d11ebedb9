"""Kernel's snapshot of a table whose newest files are known.

Kernel lists a log before it reads it. On a local disk, and on S3 without a setting of Hadoop's, that is the whole
directory. With millions of commits this takes half a minute or more. Kernel builds the snapshot from the same files
here. Only its listing is replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemark.lake.segments import LOG_DIRECTORY, bare, checksum_name, commit_name

if TYPE_CHECKING:
    from tidemark.lake.log_tails import LogTail
    from tidemark.lake.storage import StoredFile

__all__ = ["snapshot_of_tail"]


def snapshot_of_tail(jvm: Any, engine: Any, table_path: str, tail: LogTail) -> Any:
    """The table at the head of the tail. `table_path`: as Kernel resolves it. Raises py4j's errors."""
    kernel, head = jvm.io.delta.kernel, tail.files.head
    context = kernel.internal.metrics.SnapshotQueryContext.forLatestSnapshot(table_path)
    context.setResolvedVersion(head)
    segment = _segment(jvm, table_path, tail, context.getResolvedVersion())
    context.setCheckpointVersion(segment.getCheckpointVersionOpt())
    manager = kernel.internal.snapshot.SnapshotManager(kernel.internal.fs.Path(table_path))
    methods = manager.getClass().getDeclaredMethods()
    (create,) = (one for one in methods if one.getName() == "createSnapshot")
    create.setAccessible(True)  # Kernel's only way to a snapshot of given files
    return create.invoke(manager, jvm.java.util.ArrayList([segment, engine, context]).toArray())


def _segment(jvm: Any, table_path: str, tail: LogTail, published: Any) -> Any:
    """`published`: the head as Java's Optional<Long>, which Python cannot make of a small number."""
    kernel, files = jvm.io.delta.kernel, tail.files
    place = f"{table_path}/{LOG_DIRECTORY}"

    def status(name: str) -> Any:
        return _status(kernel, place, tail.stored[bare(name)])

    checkpoint = files.checkpoint_at_or_before(files.head)
    assert checkpoint is not None
    commits = [status(commit_name(version)) for version in files.commits if version > checkpoint.version]
    last = commits[-1] if commits else status(commit_name(files.head))
    checksum = max((known for known in files.checksums if known >= checkpoint.version), default=None)
    optional = jvm.java.util.Optional
    return kernel.internal.snapshot.LogSegment(
        kernel.internal.fs.Path(place),
        files.head,
        commits,
        [],
        [status(name) for name in checkpoint.names],
        last,
        optional.empty() if checksum is None else optional.of(status(checksum_name(checksum))),
        published,
    )


def _status(kernel: Any, place: str, file: StoredFile) -> Any:
    return kernel.utils.FileStatus.of(f"{place}/{file.name}", file.size, int(file.modified_at.timestamp() * 1000))
