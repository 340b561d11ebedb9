"""One attempt of a task whose DAG may be edited: `killed_edited.py HOME FORM STORE TARGET SAID`.

It works by the hook, as an operator does. FORM `append` or `merge`: it begins, and submits if it is to be killed.
Otherwise it says its form and the end of its window in the file SAID. `held`: it delivers by a function, which says
that it has begun and waits. `delivered`: it delivers by a merge.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(home: str, form: str, store: str, target: str, said: str) -> None:
    os.environ |= {"TIDEMARK_CONTROL_STORE": store, "TIDEMARK_LAKE_ROOT": home, "TIDEMARK_SPARK_MASTER": "local[1]"}
    from tests.guarantees.world import key_of
    from tidemark.failpoints import KILL_AT
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.statements import PlannedWrite, WriteAs
    from tidemark.streams.worker.begin import begin
    from tidemark.streams.worker.consume import deliver
    from tidemark.streams.worker.outcomes import Opened
    from tidemark.streams.worker.submit import submit

    write = {
        "append": PlannedWrite(WriteAs.APPEND, target, source="s"),
        "held": PlannedWrite(WriteAs.FUNCTION, target, function="held_write:hold"),
    }.get(form, PlannedWrite(WriteAs.MERGE, target, source="s", keys=("id",)))
    hook = TidemarkHook()
    runtime = hook.runtime(SparkJob(hook.settings, python_path=[str(Path(__file__).parent)]).run)
    begun = begin(runtime, key=key_of("one"), streams=("s",), writes=[write], owner="worker")
    assert isinstance(begun, Opened), begun
    if form in ("held", "delivered"):
        deliver(runtime, begun)
    elif os.environ.get(KILL_AT):
        submit(runtime, begun.transaction)
    (stored,) = [statement.write for statement in begun.transaction.plan.statements]
    Path(said).write_text(f"{stored.write_as.value} {begun.transaction.windows[0].end}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
