"""Runs a user's own PySpark application on the same Spark and Delta as the streams."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from tidemark.errors import JobDied
from tidemark.hooks._files import private_directory
from tidemark.hooks._job_files import alive
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
        directory = private_directory(self._settings.jobs_root) / str(uuid4())
        directory.mkdir(mode=0o700)
        try:
            with alive(directory) as inherited:
                submission = self._submission = self._new_submission(directory, arguments, inherited)
                with self._ending_the_session(submission), self._ending_the_group(submission):
                    submission.submit(str(application), cwd=str(directory))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if submission.exit_code != 0:
            raise JobDied(key=name, exit_code=submission.exit_code, tail="\n".join(submission.tail))
