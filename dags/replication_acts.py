"""Acts on any replication from Airflow's own form: trigger this DAG, choose an action, and name the replication.

A run does one action. Its graph shows which, and the other tasks are skipped. A second run with the same answers
changes nothing, but dropping a missing replication is an error. To drop a replication, type its name twice. The command
line has the same actions: `airflow tidemark replications pause | resume | recover | backfill | drop`.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, task

from tidemark.operators.replication_lifecycle import (
    PauseReplicationOperator,
    RecoverReplicationOperator,
    ResumeReplicationOperator,
)
from tidemark.operators.replication_objects import RequestBackfillOperator
from tidemark.operators.replications import DropReplicationOperator

ACTIONS = {
    "pause": "Pause: captured events are applied first",
    "resume": "Resume",
    "backfill": "Request backfills of the tables",
    "stop_backfill": "Stop backfills of the tables",
    "recover": "Recover from the position; the tables are not backfilled again",
    "drop": "Drop slot, publication and event log; targets stay",
}

with DAG(
    "replication_acts",
    description="Pauses, resumes, backfills, recovers or drops a replication, by hand",
    schedule=None,
    catchup=False,
    params={
        "action": Param("pause", type="string", enum=list(ACTIONS), values_display=ACTIONS, description="the action"),
        "replication": Param("", type="string", minLength=1, description="the name of the replication"),
        "tables": Param([], type="array", items={"type": "string"}, description="tables, one a line: shop.orders"),
        "position": Param("now", type="string", description="to recover: now, or a position such as 16/B374D848"),
        "sure": Param("", type="string", description="to drop: the name of the replication once more"),
        "why": Param("", type="string", description="a reason, which the history of the replication keeps"),
    },
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:

    @task.branch
    def act(params: dict[str, Any]) -> str:
        """The task of the action; fails if an answer is missing."""
        from airflow.sdk.exceptions import AirflowFailException

        action = str(params["action"])
        if action in ("backfill", "stop_backfill") and not params["tables"]:
            raise AirflowFailException("Name the tables.")
        if action == "drop" and params["sure"] != params["replication"]:
            raise AirflowFailException("Type the name of the replication under `sure`, too, to drop it.")
        return action

    replication, why, tables = "{{ params.replication }}", "{{ params.why }}", "{{ params.tables | tojson }}"

    act() >> [
        PauseReplicationOperator(task_id="pause", replication=replication, why=why),
        ResumeReplicationOperator(task_id="resume", replication=replication, why=why),
        RequestBackfillOperator(task_id="backfill", replication=replication, objects=tables),
        RequestBackfillOperator(task_id="stop_backfill", replication=replication, objects=tables, action="stop"),
        RecoverReplicationOperator(
            task_id="recover", replication=replication, position="{{ params.position }}", keep=tables, why=why
        ),
        DropReplicationOperator(task_id="drop", replication=replication, if_exists=False),
    ]
