"""Runs a user's own PySpark application on the same Spark and Delta as the streams."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tidemark.errors import JobDied
from tidemark.hooks.spark_job import SparkJob

__all__ = ["SparkApplication"]


class SparkApplication(SparkJob):
    """Like a job of Tidemark: the Spark of the connection, Delta's jars and settings, a process group of its own.

    Lines that the application prints with a leading `tidemark: ` go to the task log; of the rest, JobDied has the last.
    """

    def run_application(self, application: Path, arguments: Sequence[str], *, name: str) -> None:
        """Submit and wait. Raises what `require_ready` raises before the start, and JobDied for a bad exit code.

        Whether a second run is harmless is up to the application.
        """
        self.require_ready()
        with tempfile.TemporaryDirectory(prefix="tidemark-") as directory:
            submission = self._submission = self._new_submission(Path(directory), arguments)
            with self._ending_the_session(submission), self._ending_the_group(submission):
                submission.submit(str(application), cwd=directory)
        if submission.exit_code != 0:
            raise JobDied(key=name, exit_code=submission.exit_code, tail="\n".join(submission.tail))
