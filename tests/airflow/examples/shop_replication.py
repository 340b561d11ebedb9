"""A shop's PostgreSQL, replicated: as a group, with its steps written out, and looked after."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Param, TriggerRule

from tidemark.operators.replication_capture import CaptureEventsOperator
from tidemark.operators.replication_continuous import ReplicateContinuouslyOperator
from tidemark.operators.replication_files import EventFilesOperator
from tidemark.operators.replication_lifecycle import (
    PauseReplicationOperator,
    RecoverReplicationOperator,
    ResumeReplicationOperator,
)
from tidemark.operators.replication_objects import ApplyEventsOperator, BackfillObjectOperator, RequestBackfillOperator
from tidemark.operators.replication_retention import ExpireEventLogOperator
from tidemark.operators.replications import (
    CreateReplicationOperator,
    DropReplicationOperator,
    FinishReplicationOperator,
    PrepareReplicationOperator,
)
from tidemark.sensors.replication import BackfillDoneSensor, ReplicationLagSensor
from tidemark.task_groups.replicate import replicate, replicate_continuously

# [START shop_replication]
with DAG(
    "shop_replication",
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=3,
    allowed_run_types=["scheduled", "manual"],
    default_args={"retries": 2},
    params={"backfill": Param([], type="array", items={"type": "string"})},
) as shop_replication:
    # [START create]
    create = CreateReplicationOperator(
        task_id="create",
        replication="shop",
        source_conn_id="shop_database",
        target="replicated",
        include=["shop.orders", "shop.customers"],
        exclude=["shop.customers.credit"],
    )
    # [END create]

    create >> replicate(
        "replicate",
        replication="shop",
        prepare={"backfill": "{{ params.backfill | tojson }}"},
        backfill={"max_active_tis_per_dagrun": 2},
    )
# [END shop_replication]

# [START shop_within_seconds]
with DAG(
    "shop_within_seconds",
    schedule="@continuous",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
) as shop_within_seconds:
    replicate_continuously("replicate", replication="shop", rounds={"run_for_seconds": 3600})
# [END shop_within_seconds]

with DAG("shop_in_rounds", schedule=None, catchup=False) as shop_in_rounds:
    # [START rounds]
    rounds = ReplicateContinuouslyOperator(task_id="rounds", replication="shop", run_for_seconds=600, every_seconds=2)
    # [END rounds]

# [START backfills_of_shop]
with DAG(
    "backfills_of_shop",
    schedule=None,
    params={"backfill": Param([], type="array", items={"type": "string"}), "action": Param("start")},
) as backfills_of_shop:
    # [START request]
    request = RequestBackfillOperator(
        task_id="request",
        replication="shop",
        objects="{{ params.backfill | tojson }}",
        action="{{ params.action }}",
    )
    # [END request]
# [END backfills_of_shop]

# [START shop_replication_in_steps]
with DAG("shop_replication_in_steps", schedule=None, catchup=False, max_active_runs=3) as shop_replication_in_steps:
    # [START prepare]
    prepare = PrepareReplicationOperator(task_id="prepare", replication="shop", slot_patience_seconds=60)
    # [END prepare]

    # [START capture]
    capture = CaptureEventsOperator(task_id="capture", replication="shop")
    # [END capture]

    # [START backfill]
    backfill = BackfillObjectOperator(task_id="backfill", replication="shop", object_name="shop.orders", partitions=2)
    # [END backfill]

    # [START apply]
    apply = ApplyEventsOperator(task_id="apply", replication="shop", trigger_rule=TriggerRule.NONE_FAILED)
    # [END apply]

    # [START finish]
    finish = FinishReplicationOperator(task_id="finish", replication="shop")
    # [END finish]

    prepare >> [capture, backfill] >> apply >> finish
# [END shop_replication_in_steps]

# [START shop_is_replicated]
with DAG("shop_is_replicated", schedule=None, catchup=False) as shop_is_replicated:
    # [START done]
    done = BackfillDoneSensor(
        task_id="done", replication="shop", objects=["shop.orders"], fail_on="failed", timeout=3600, mode="reschedule"
    )
    # [END done]

    # [START fresh]
    fresh = ReplicationLagSensor(
        task_id="fresh",
        replication="shop",
        objects=["shop.orders"],
        lag_seconds=900,
        below=True,
        timeout=3600,
        mode="reschedule",
    )
    # [END fresh]

    done >> fresh
# [END shop_is_replicated]

# [START shop_event_files]
with DAG("shop_event_files", schedule=timedelta(minutes=15), catchup=False, max_active_runs=1) as shop_event_files:
    files = EventFilesOperator(
        task_id="files",
        replication="shop",
        target="/data/events/shop",
        format="avro",
        file_mb=50,
        file_interval=60,
    )
# [END shop_event_files]

# [START expire_shop_events]
with DAG("expire_shop_events", schedule="@daily", catchup=False, max_active_runs=1) as expire_shop_events:
    expire = ExpireEventLogOperator(task_id="expire", replication="shop", keep_days=7)
# [END expire_shop_events]

with DAG("hold_shop_replication", schedule=None, catchup=False) as hold_shop_replication:
    # [START pause]
    pause = PauseReplicationOperator(task_id="pause", replication="shop", why="the source is upgraded")
    # [END pause]

with DAG("release_shop_replication", schedule=None, catchup=False) as release_shop_replication:
    # [START resume]
    resume = ResumeReplicationOperator(task_id="resume", replication="shop", why="it is upgraded")
    # [END resume]

with DAG("recover_shop_replication", schedule=None, catchup=False) as recover_shop_replication:
    # [START recover]
    recover = RecoverReplicationOperator(
        task_id="recover", replication="shop", position="now", why="the slot was lost on Sunday"
    )
    # [END recover]

with DAG("drop_shop_replication", schedule=None, catchup=False) as drop_shop_replication:
    # [START drop]
    drop = DropReplicationOperator(task_id="drop", replication="shop")
    # [END drop]
