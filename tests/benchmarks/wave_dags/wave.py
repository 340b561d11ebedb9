"""The DAG of the benchmark of a wave with task slots: four partitions, in one task or in a task each."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.task_groups.change_stream_partitions import change_stream_partitions

for name, chunks_per_task in {"one_task": 16, "a_task_each": 1}.items():
    with DAG(name, schedule=None) as dag:
        change_stream_partitions(
            "deliver",
            change_stream="waves",
            consumer_group=name,
            write_as="append",
            target="b.records",
            waves=1,
            plan={"chunks_per_task": chunks_per_task},
        )
    globals()[name] = dag
