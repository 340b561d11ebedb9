"""Acts on a stream, a dynamic table, a pipe or a change stream by Airflow's own form.

Trigger this DAG, and choose an action. A run does one action. Its graph shows which, and the other tasks are skipped. A
second run with the same answers changes nothing, but dropping a missing object is an error. To drop an object, type its
name twice. The command line has the same actions: `airflow tidemark views`, `streams`, `pipes` and `change-streams`.
Replications have the DAG `replication_acts`.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, task

from tidemark.operators.alter_pipe import AlterPipeOperator
from tidemark.operators.change_streams import DropChangeStreamOperator
from tidemark.operators.stream_sql import StreamSQLOperator
from tidemark.operators.streams import DropStreamOperator

ACTIONS = {
    "suspend_dynamic_table": "Suspend the dynamic table: it is not refreshed",
    "resume_dynamic_table": "Resume the dynamic table",
    "drop_dynamic_table": "Drop the dynamic table; its rows stay at its path",
    "drop_stream": "Drop the stream; its history stays",
    "pause_pipe": "Pause the pipe: its runs load nothing, and its queue may grow",
    "resume_pipe": "Resume the pipe, within 14 days",
    "drop_pipe": "Drop the pipe; its queue, its history and the rows that it loaded stay",
    "suspend_change_stream": "Suspend the change stream: it watches no table, and its records stay",
    "resume_change_stream": "Resume the change stream on the tables, from their newest versions on",
    "drop_change_stream": "Drop the change stream, its records and its consumer groups",
}

with DAG(
    "object_acts",
    description="Suspends, resumes or drops a stream, a dynamic table, a pipe or a change stream, by hand",
    schedule=None,
    catchup=False,
    is_paused_upon_creation=True,
    params={
        "action": Param("suspend_dynamic_table", type="string", enum=list(ACTIONS), values_display=ACTIONS),
        "name": Param("", type="string", minLength=1, description="the name of the object"),
        "tables": Param([], type="array", items={"type": "string"}, description="tables to watch, one a line"),
        "sure": Param("", type="string", description="to drop: the name of the object once more"),
    },
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:

    @task.branch
    def act(params: dict[str, Any]) -> str:
        """The task of the action; fails if an answer is missing."""
        from airflow.sdk.exceptions import AirflowFailException

        action = str(params["action"])
        if action == "resume_change_stream" and not params["tables"]:
            raise AirflowFailException("Name the tables.")
        if action.startswith("drop") and params["sure"] != params["name"]:
            raise AirflowFailException("Type the name of the object under `sure`, too, to drop it.")
        return action

    name, tables = "{{ params.name }}", "{{ params.tables | join(', ') }}"

    act() >> [
        StreamSQLOperator(task_id="suspend_dynamic_table", sql=f"ALTER DYNAMIC TABLE {name} SUSPEND"),
        StreamSQLOperator(task_id="resume_dynamic_table", sql=f"ALTER DYNAMIC TABLE {name} RESUME"),
        StreamSQLOperator(task_id="drop_dynamic_table", sql=f"DROP DYNAMIC TABLE {name}"),
        DropStreamOperator(task_id="drop_stream", stream=name, if_exists=False),
        AlterPipeOperator(task_id="pause_pipe", pipe=name, action="pause"),
        AlterPipeOperator(task_id="resume_pipe", pipe=name, action="resume"),
        AlterPipeOperator(task_id="drop_pipe", pipe=name, action="drop", if_exists=False),
        StreamSQLOperator(task_id="suspend_change_stream", sql=f"ALTER CHANGE STREAM {name} DROP FOR ALL"),
        StreamSQLOperator(task_id="resume_change_stream", sql=f"ALTER CHANGE STREAM {name} SET FOR {tables}"),
        DropChangeStreamOperator(task_id="drop_change_stream", change_stream=name, if_exists=False),
    ]
