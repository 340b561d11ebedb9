"""The temporary files of a driver's JVM, which others remove after it was killed.

Spark copies all jars and keeps shuffles in Java's directory for temporary files, and removes them at its own end only.
Each killed driver would leave some 90 MB.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["make_scratch", "remove_scratch", "with_scratch"]

_LINK = "scratch"
_PREFIX = "tidemark-spark-"
_OPTIONS = "SPARK_SUBMIT_OPTS"
_READ_BEFORE = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_PROPERTY = "-Djava.io.tmpdir="


def make_scratch(place: Path) -> Path:
    """A new private directory where the system has its temporary files. A link in `place`, the private directory of a
    job or server, leads there. An earlier one of the same place is removed.
    """
    remove_scratch(place)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
    link = place / _LINK
    link.unlink(missing_ok=True)
    link.symlink_to(directory)
    return directory


def remove_scratch(place: Path) -> None:
    """Removes that directory with all that is in it. Idempotent, and nothing if `place` has none. A later call finds
    files that cannot be removed now.
    """
    link = place / _LINK
    with suppress(OSError):
        target = link.readlink()
        if target.name.startswith(_PREFIX):
            with suppress(FileNotFoundError):
                shutil.rmtree(target)
        link.unlink(missing_ok=True)


def with_scratch(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The environment of a spark-submit whose JVM has its temporary files there. A directory that the environment's
    Java options name wins, and one in Spark's settings, too.
    """
    if any(_PROPERTY in environment.get(name, "") for name in (_OPTIONS, *_READ_BEFORE)):
        return dict(environment)
    option = f'"{_PROPERTY}{scratch}"'
    return {**environment, _OPTIONS: " ".join(filter(None, (environment.get(_OPTIONS), option)))}
