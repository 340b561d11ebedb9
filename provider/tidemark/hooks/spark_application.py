"""A user's own PySpark application on the Spark and Delta of the streams."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from uuid import uuid4

from tidemark.errors import JobCancelled, JobDied, NotYetSupported
from tidemark.hooks._drivers import JobFiles
from tidemark.hooks._files import private_directory
from tidemark.hooks._job_files import alive
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.spark_mode import SparkMode
from tidemark.warm_spark.scratch import remove_scratch

__all__ = ["SparkApplication"]


class SparkApplication(SparkJob):
    """An application that runs like a job of Tidemark: the connection's Spark, Delta's jars and settings, a process
    group of its own.

    Lines that begin with `tidemark: ` go to the task log. JobDied has the last of the other lines.
    """

    def run_application(
        self, application: Path, arguments: Sequence[str], *, name: str, needs_jvm: bool = True
    ) -> None:
        """Runs the application and waits. The application decides whether a second run is harmless.

        `needs_jvm`: without it, the warm Spark of this host is used where jobs use it. Its session has no SparkContext.

        Raises errors of `require_ready` before the start, JobCancelled if it waited when `cancel` was called, and
        JobDied for a bad exit code.
        """
        mode = self._ready()
        if self.in_cluster:
            instead = "Name a Spark connection without it: an application of yours runs beside its task."
            raise NotYetSupported(feature="An application in deploy mode 'cluster'", instead=instead)
        if mode is SparkMode.WARM and needs_jvm:
            mode = SparkMode.SUBMIT
        directory = private_directory(self._settings.jobs_root) / str(uuid4())
        directory.mkdir(mode=0o700)
        try:
            with alive(directory) as inherited:
                files = JobFiles(directory, tuple(arguments), inherited)
                with self._driver(mode, files, partial(self._stop_if_cancelled, name), about=name) as driver:
                    self._submission = driver
                    with self._ending_the_session(driver), self._ending_the_group(driver):
                        driver.submit(str(application), cwd=str(directory))
        finally:
            self._submission = None  # as after a job
            remove_scratch(directory)
            shutil.rmtree(directory, ignore_errors=True)
        if driver.exit_code != 0:
            raise JobDied(key=name, exit_code=driver.exit_code, tail="\n".join(driver.tail))

    def _stop_if_cancelled(self, name: str) -> None:
        if self._stopped_because is not None:
            raise JobCancelled(key=name)
