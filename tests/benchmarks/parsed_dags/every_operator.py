"""Everything of Tidemark's that a DAG file can name."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from tidemark.assets import pipe_files_asset, stream_asset, stream_data_asset
from tidemark.notifications.idle_channel import ChannelIdleNotifier
from tidemark.notifications.needing_objects import NeedingObjectsNotifier
from tidemark.notifications.stale_stream import StaleStreamNotifier
from tidemark.notifications.troubled_pipe import PipeTroubleNotifier
from tidemark.operators.alter_channel import AlterChannelOperator
from tidemark.operators.alter_pipe import AlterPipeOperator
from tidemark.operators.auto_cluster import AutoClusterOperator
from tidemark.operators.backfill import BackfillTableOperator
from tidemark.operators.cached_query import CachedQueryOperator
from tidemark.operators.capture import CaptureChangesOperator
from tidemark.operators.change_streams import (
    AlterChangeStreamOperator,
    CreateChangeStreamOperator,
    DropChangeStreamOperator,
)
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.consumer_groups import AlterConsumerGroupOperator, CreateConsumerGroupOperator
from tidemark.operators.copy_into import CopyIntoOperator
from tidemark.operators.expire_change_log import ExpireChangeLogOperator
from tidemark.operators.external_tables import RefreshExternalTableOperator
from tidemark.operators.ingest import IngestRowsOperator
from tidemark.operators.keep_channels import KeepChannelsOperator
from tidemark.operators.keyed_streams import CreateKeyedStreamOperator
from tidemark.operators.partitions import (
    CommitPartitionsOperator,
    FinishPartitionsOperator,
    PlanPartitionsOperator,
    ReadPartitionOperator,
)
from tidemark.operators.pipes import CreatePipeOperator, RefreshPipeOperator, RunPipeOperator
from tidemark.operators.rebase import RebaseStreamOperator
from tidemark.operators.refresh_views import RefreshDueViewsOperator, RefreshViewOperator
from tidemark.operators.replay import ReplayWindowOperator
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
from tidemark.operators.search import AlterSearchOptimizationOperator, KeepSearchPathOperator
from tidemark.operators.stream_sql import StreamSQLOperator
from tidemark.operators.streams import AdvanceStreamOperator, CreateStreamOperator, DropStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.operators.vacuum import VacuumTableOperator
from tidemark.operators.view_streams import CreateViewStreamOperator
from tidemark.operators.views import CreateDynamicTableOperator, CreateMaterializedViewOperator
from tidemark.sensors.channels import ChannelLagSensor
from tidemark.sensors.consumer_groups import ConsumerGroupStaleSensor
from tidemark.sensors.pipes import PipePendingSensor
from tidemark.sensors.replication import BackfillDoneSensor, ReplicationLagSensor
from tidemark.sensors.stale import StreamStaleSensor
from tidemark.sensors.streams import StreamHasDataSensor
from tidemark.sensors.views import ViewLagSensor
from tidemark.task_groups.change_stream_partitions import change_stream_partitions
from tidemark.task_groups.replicate import replicate
from tidemark.task_groups.stream_transaction import stream_transaction

with DAG(
    "every_operator",
    schedule=[stream_data_asset("orders"), pipe_files_asset("shop.files")],
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 - as many DAGs have it
    on_failure_callback=StaleStreamNotifier(),
):
    create = CreateStreamOperator(task_id="create", stream="orders", on="shop.orders")
    wait = StreamHasDataSensor(task_id="wait", stream="orders", deferrable=True)
    stale = StreamStaleSensor(task_id="stale", on_success_callback=StaleStreamNotifier(hours_left=48))
    consume = ConsumeStreamOperator(
        task_id="consume", stream="orders", target="shop.mirror", write_as="merge", keys=["id"]
    )
    with stream_transaction("deliver", streams=["orders", "items"], outlets=[stream_asset("orders")]) as deliver:
        WriteStreamOperator(task_id="append", stream="items", target="shop.log", write_as="append")
        WriteStreamOperator(task_id="sql", write_as="sql", sql="ids.sql")
    advance = AdvanceStreamOperator(task_id="advance", stream="orders", to="5", why="skip")
    sql = StreamSQLOperator(task_id="sql", sql="comment.sql")
    view = CreateViewStreamOperator(task_id="view", stream="cities", on="shop.cities")
    files = RefreshExternalTableOperator(task_id="files", external_table="arrivals")
    keyed = CreateKeyedStreamOperator(task_id="keyed", stream="loads", on="shop.loads", keys=["id"])
    again = ReplayWindowOperator(task_id="again", stream="orders", run="r", target="shop.copy", write_as="append")
    vacuum = VacuumTableOperator(task_id="vacuum", table="shop.orders")
    rebase = RebaseStreamOperator(task_id="rebase", stream="orders", why="loaded anew")
    drop = DropStreamOperator(task_id="drop", stream="items")
    watch = CreateChangeStreamOperator(task_id="watch", change_stream="Shop", watch={"shop.orders": ["status"]})
    alter = AlterChangeStreamOperator(task_id="alter", change_stream="Shop", watch="ALL")
    forget = DropChangeStreamOperator(task_id="forget", change_stream="Shop")
    of_group = {"change_stream": "Shop", "consumer_group": "mirror"}
    readers = CreateConsumerGroupOperator(task_id="readers", **of_group)
    pause = AlterConsumerGroupOperator(task_id="pause", **of_group, action="pause")
    late = ConsumerGroupStaleSensor(task_id="late", **of_group)
    rows = BackfillTableOperator(task_id="rows", **of_group, table="shop.orders", target="shop.rows")
    cached_query = CachedQueryOperator(task_id="cached_query", sql="counts.sql")
    ingest = IngestRowsOperator(task_id="ingest", source="lines", table="shop.log_lines", channel="logs")
    token = AlterChannelOperator(task_id="token", table="shop.log_lines", channel="logs", action="set_token", token="7")
    keep = KeepChannelsOperator(task_id="keep", tables="shop.log_lines")
    search = AlterSearchOptimizationOperator(task_id="search", table="shop.orders", on="{{ params.on }}")
    search >> KeepSearchPathOperator(task_id="search_path", table="shop.orders")
    fresh = ChannelLagSensor(
        task_id="fresh", table="shop.log_lines", lag_seconds=900, below=True, on_failure_callback=ChannelIdleNotifier()
    )
    capture = CaptureChangesOperator(task_id="capture", change_stream="Shop")
    plan = PlanPartitionsOperator(task_id="plan", **of_group)
    read = ReadPartitionOperator.partial(task_id="read", change_stream="Shop", write_as="m:f").expand(
        bundle=plan.output
    )
    commit = CommitPartitionsOperator(task_id="commit", **of_group)
    finish = FinishPartitionsOperator(task_id="finish", **of_group)
    partitions = change_stream_partitions("partitions", **of_group, write_as="merge", target="shop.rows", waves=3)
    create >> [wait, stale] >> consume >> deliver >> advance >> sql >> view >> files >> keyed >> again >> vacuum
    vacuum >> rebase >> drop >> watch >> alter >> forget
    expire = ExpireChangeLogOperator(task_id="expire", change_stream="Shop")
    readers >> pause >> late >> rows >> capture >> plan >> read >> commit >> finish >> partitions >> expire
    copy_files = CopyIntoOperator(task_id="copy_files", sql="copy.sql")
    paused = AlterPipeOperator(task_id="paused", pipe="shop.files", action="pause")
    pipe = CreatePipeOperator(task_id="pipe", pipe="shop.files", copy_statement="copy.sql")
    files_wait = PipePendingSensor(task_id="files_wait", pipe="shop.files", deferrable=True)
    load = RunPipeOperator(task_id="load", pipe="shop.files", on_failure_callback=PipeTroubleNotifier())
    refresh = RefreshPipeOperator(
        task_id="refresh", pipe="shop.files", on_failure_callback=NeedingObjectsNotifier(kind="pipe")
    )
    copy_files >> pipe >> refresh >> files_wait >> load
    kept = CreateDynamicTableOperator(task_id="kept", view="shop.kept", query="kept.sql", target_lag="1 hour")
    fresh_view = CreateMaterializedViewOperator(task_id="fresh_view", view="shop.fresh", query="kept.sql")
    due = RefreshDueViewsOperator(task_id="due")
    once_more = RefreshViewOperator(task_id="once_more", view="shop.fresh")
    young = ViewLagSensor(task_id="young", view="shop.kept", deferrable=True)
    clustered = AutoClusterOperator(task_id="clustered", tables="shop.rows", cluster_by="id")
    kept >> fresh_view >> due >> young >> once_more >> clustered
    shop = {"replication": "shop"}
    define = CreateReplicationOperator(task_id="define", **shop, source_conn_id="shop_db", target="shop")
    request = RequestBackfillOperator(task_id="request", **shop, objects="{{ params.objects }}")
    prepare = PrepareReplicationOperator(task_id="prepare", **shop)
    events = CaptureEventsOperator(task_id="events", **shop)
    copy = BackfillObjectOperator.partial(task_id="copy", **shop).expand(object_name=prepare.output)
    apply = ApplyEventsOperator(task_id="apply", **shop)
    rounds = ReplicateContinuouslyOperator(task_id="rounds", **shop)
    finished = FinishReplicationOperator(task_id="finished", **shop)
    done = BackfillDoneSensor(task_id="done", **shop)
    behind = ReplicationLagSensor(task_id="behind", **shop, lag_seconds=3600)
    hold = PauseReplicationOperator(task_id="hold", **shop)
    go_on = ResumeReplicationOperator(task_id="go_on", **shop)
    recover = RecoverReplicationOperator(task_id="recover", **shop, position="now")
    event_files = EventFilesOperator(task_id="event_files", **shop, target="/data/events")
    let_go = ExpireEventLogOperator(task_id="let_go", **shop)
    end = DropReplicationOperator(task_id="end", **shop)
    whole = replicate("whole", **shop)
    (
        define
        >> request
        >> prepare
        >> events
        >> copy
        >> apply
        >> rounds
        >> finished
        >> [done, behind]
        >> hold
        >> go_on
        >> recover
        >> event_files
        >> let_go
        >> end
    )
