"""Jobs that other processes submit, run in a Spark that is up: a script stands where spark-submit is looked for.

What it saves is the start of a JVM; job, worker and the files between them are the real ones.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["hand_over", "put_in_place", "serving", "warm_path"]


def put_in_place(binary: Path, started: Path, script: str) -> None:
    """Makes `binary` a shell script that notes its arguments in `started`; `$spec` is the last of them."""
    binary.parent.mkdir(exist_ok=True)
    binary.write_text(f'#!/bin/bash\necho "$@" >> {started}\nspec="${{@: -1}}"\n{script}\n')
    binary.chmod(0o755)


def hand_over(queue: Path) -> str:
    """A script that lays the spec into `queue`, which must be there, and ends as the job that `serving` runs does."""
    return (
        f'cd {queue}; printf %s "$TIDEMARK_SOURCE" > $$.source; echo "$spec" > $$.half; mv $$.half $$.spec\n'
        "while [ ! -e $$.done ]; do sleep 0.05; done; cat $$.said; exit $(cat $$.done)"
    )


@contextmanager
def warm_path(spark: SparkSession, home: Path, *modules: Path) -> Iterator[str]:
    """A PATH on which spark-submit hands each job to `spark`; `modules` are where the jobs' functions are found."""
    queue, binary = home / "queue", home / "bin" / "spark-submit"
    queue.mkdir(exist_ok=True)
    put_in_place(binary, home / "started", hand_over(queue))
    with pytest.MonkeyPatch.context() as environment, serving(spark, queue):
        for module in modules:
            environment.syspath_prepend(str(module))
        yield f"{binary.parent}{os.pathsep}{os.environ['PATH']}"


@contextmanager
def serving(spark: SparkSession, queue: Path) -> Iterator[None]:
    """Runs what is laid into `queue`, one job after the other, while the context does."""
    ended = threading.Event()
    server = threading.Thread(target=_serve, args=(spark, queue, ended), daemon=True)
    server.start()
    try:
        yield
    finally:
        ended.set()
        server.join()


def _serve(spark: SparkSession, queue: Path, ended: threading.Event) -> None:
    from tidemark.jobs.files import read_spec, write_result
    from tidemark.jobs.run import run
    from tidemark.model.codec import from_json
    from tidemark.model.source_address import SourceAddress

    while not ended.wait(0.05):
        for request in queue.glob("*.spec"):
            spec = read_spec(request.read_text().strip())
            request.unlink()
            said: list[str] = []
            source = request.with_suffix(".source").read_text()
            address = from_json(SourceAddress, source) if source else None
            result = run(spark, spec, say=said.append, source=address)
            write_result(spec.result_uri, result)
            request.with_suffix(".said").write_text("".join(f"tidemark: {line}\n" for line in said))
            request.with_suffix(".half").write_text("0" if result.error is None else "1")
            request.with_suffix(".half").replace(request.with_suffix(".done"))
