"""The path of a pipe's queue, its table of files."""

from __future__ import annotations

from tidemark.pipes.planning.names import name_parts

__all__ = ["QUEUE_ENDING", "numbered", "queue_path"]

QUEUE_ENDING = "__files"


def queue_path(lake_root: str, name: str, number: int = 1) -> str:
    """The path of the queue of the pipe `name`: where a table of that name would be. `number`: of the pipes that had
    the name, this one is the nth. Raises InvalidArgument for a bad name.
    """
    path = "/".join([lake_root.rstrip("/"), *(part.replace("/", "_") for part in name_parts(name))])
    return numbered(path + QUEUE_ENDING, number)


def numbered(queue: str, number: int) -> str:
    """The path of the nth pipe whose first one has `queue`."""
    return queue if number == 1 else f"{queue.removesuffix(QUEUE_ENDING)}_{number}{QUEUE_ENDING}"
