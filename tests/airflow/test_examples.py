"""The DAGs that the pages of provider/docs/operators show, run as they stand there."""

from __future__ import annotations

import importlib
import json
import smtplib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.fan_out import Shop
from tests.airflow.runs import Lake, Outcome
from tests.dag_runs import run_registered
from tests.engine.passing_time import pass_time
from tests.guarantees.synthetic_tables import SyntheticTable
from tests.guarantees.view_world import ViewWorld
from tests.postgresql import PostgresServer
from tests.unit.lake.delta_directories import singers
from tidemark.change_streams.worker.defining import create as define_change_stream
from tidemark.change_streams.worker.definitions import get_change_stream, list_change_streams
from tidemark.hooks.lake_tables import lake_tables_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.lake.log_paths import logs_root
from tidemark.materialized.worker.views import get_view, list_views
from tidemark.model.streams import StreamMode
from tidemark.pipes.worker.definitions import create_pipe, get_pipe, list_pipes
from tidemark.search.worker.definitions import list_searches
from tidemark.streams.worker.streams import advance_stream, create_stream, get_stream, list_streams, stream_history

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
DAGS = Path(__file__).parents[2] / "dags"
DAY = datetime(2026, 3, 1, tzinfo=UTC)
ORDERS = "id BIGINT, customer BIGINT, status STRING"
TARGETS = {
    "shop.orders_mirror": ORDERS,
    "shop.orders_copy": ORDERS,
    "shop.open_orders": ORDERS,
    "shop.orders_history": "id BIGINT, status STRING, action STRING",
    "shop.orders_log": "id BIGINT, status STRING, action STRING",
    "shop.cities": "order_id BIGINT, city STRING",
    "shop.payments": "id BIGINT, amount BIGINT",
    "shop.prices": "id BIGINT, price BIGINT",
    "shop.prices_mirror": "id BIGINT, price BIGINT",
}
LOADED = {"shop.orders_copied": "id BIGINT, status STRING", "shop.orders_loaded": "id BIGINT, status STRING"}
LANDING = {"shop.log_lines": "at TIMESTAMP, level STRING, message STRING"}


@pytest.fixture(scope="module")
def shop(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A shop of its own: two orders of one customer, empty targets, a store without streams."""
    root = tmp_path_factory.mktemp("shop")
    mine = Lake(lake.spark, root / "lake")
    mine.create("shop.orders", ORDERS, row_tracking=True)
    mine.sql("INSERT INTO {t} VALUES (1, 10, 'new'), (2, 10, 'new')", "shop.orders")
    for name, columns in {**TARGETS, **LOADED}.items():
        mine.create(name, columns)
    for name, columns in LANDING.items():
        mine.create(name, columns, row_tracking=True)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TIDEMARK_LAKE_ROOT", str(mine.root))
        environment.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{root}/control.db")
        yield mine


@pytest.fixture
def cities(shop: Lake) -> Iterator[None]:
    """A second table, and in the catalog of all jobs a view that joins both."""
    shop.create("shop.customers", "id BIGINT, city STRING", row_tracking=True)
    shop.sql("INSERT INTO {t} VALUES (10, 'Ulm')", "shop.customers")
    orders, customers = shop.sql_name("shop.orders"), shop.sql_name("shop.customers")
    joined = f"SELECT o.id AS order_id, c.city FROM {orders} o JOIN {customers} c ON o.customer = c.id"
    shop.spark.sql("CREATE DATABASE shop")
    shop.spark.sql(f"CREATE VIEW shop.order_cities AS {joined}")
    yield
    shop.spark.sql("DROP DATABASE shop CASCADE")


@pytest.mark.spark
def test_a_mirror_is_kept_and_what_a_run_took_is_delivered_again(run_dag: RunDag, shop: Lake, warm_spark: Path) -> None:
    from tests.airflow.examples.orders import mirror_orders, replay_orders

    first = run_dag(mirror_orders, at=DAY)
    assert [first.task(name) for name in ("create", "wait", "mirror")] == ["success"] * 3
    assert shop.rows("shop.orders_mirror") == shop.rows("shop.orders") == [(1, 10, "new"), (2, 10, "new")]

    replayed = run_registered(replay_orders, run_conf={"run_id": first.run.run_id})
    assert Outcome(replayed).returned("again")["initial_rows"] is True
    assert shop.rows("shop.orders_copy") == [(1, 10, "new"), (2, 10, "new")]


@pytest.mark.spark
def test_what_breaks_a_constraint_lies_in_quarantine_and_the_rest_arrives(
    run_dag: RunDag, shop: Lake, warm_spark: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.airflow.examples.quarantined_orders import quarantined_orders

    shop.create("shop.orders_checked", ORDERS)
    shop.sql("ALTER TABLE {t} ADD CONSTRAINT few CHECK (id < 2)", "shop.orders_checked")
    for _ in ("delivered", "announced again"):
        caplog.clear()
        done = run_dag(quarantined_orders, at=DAY)
        event = done.events("checked_orders")[-1]
        assert (done.state, event["rows"], event["quarantined"]) == ("success", 1, 1)
        assert "1 rows broke a constraint of the target and are in quarantine: shop.bad_orders" in caplog.text
    assert shop.rows("shop.orders_checked") == [(1, 10, "new")]
    bad = shop.spark.read.format("delta").load(str(shop.root / "shop/bad_orders"))
    assert [tuple(row) for row in bad.select("id", "`QUARANTINE$CONSTRAINTS`").collect()] == [(2, ["CHECK few"])]


@pytest.mark.spark
def test_two_tables_get_each_change_once_and_then_the_offset_moves(
    run_dag: RunDag, shop: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    from tests.airflow.examples.orders import deliver_orders

    assert run_dag(deliver_orders, at=DAY).state == "success"
    orders = shop.rows("shop.orders")
    assert shop.rows("shop.open_orders") == orders
    assert shop.rows("shop.orders_history") == [(number, status, "INSERT") for number, _, status in orders]
    done = run_dag(deliver_orders, at=DAY)
    assert (done.returned("deliver.open_orders"), done.returned("deliver.commit")["initial_rows"]) == ({}, True)
    assert not get_stream(hook.open_store(), "order_deliveries").initial_rows_pending


@pytest.mark.spark
def test_sql_keeps_changes_and_a_view_is_kept_as_a_table(
    run_dag: RunDag, shop: Lake, cities: None, warm_spark: Path
) -> None:
    from tests.airflow.examples.order_cities import order_cities
    from tests.airflow.examples.orders_in_sql import orders_in_sql

    assert run_dag(orders_in_sql).returned("keep")["rows"] == 2
    assert run_dag(orders_in_sql).task("keep") == "skipped"
    orders = shop.rows("shop.orders")
    assert shop.rows("shop.orders_log") == [(number, status, "INSERT") for number, _, status in orders]

    made = run_dag(order_cities)
    assert (made.returned("create")["created"], made.returned("create")["table"]) == (True, "shop.order_cities")
    assert shop.rows("shop.cities") == [(1, "Ulm"), (2, "Ulm")]


@pytest.mark.spark
def test_the_rows_of_files_are_kept_in_a_table_each_once(
    run_dag: RunDag, shop: Lake, warm_spark: Path, tmp_path: Path
) -> None:
    from tests.airflow.examples.payments import payments

    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "first.json").write_text('{"id": 1, "amount": 50}\n{"id": 2, "amount": 70}\n')
    for new in (1, 0):
        done = Outcome(run_registered(payments, run_conf={"landing": str(tmp_path / "bank")}))
        assert (done.state, done.returned("refresh")["added"]) == ("success", new)
        assert shop.rows("shop.payments") == [(1, 50), (2, 70)]


@pytest.mark.spark
def test_of_a_table_that_is_loaded_anew_only_what_changed_is_delivered(
    run_dag: RunDag, shop: Lake, warm_spark: Path
) -> None:
    from tests.airflow.examples.price_lists import price_changes

    for prices, changed in (("(1, 5), (2, 7)", 2), ("(1, 5), (2, 8)", 1)):
        shop.sql(f"INSERT OVERWRITE {{t}} VALUES {prices}", "shop.prices")
        done = run_dag(price_changes)
        assert (done.task("create"), done.returned("keep")["rows"]) == ("success", changed)
        assert shop.rows("shop.prices_mirror") == shop.rows("shop.prices")


@pytest.mark.spark
def test_a_table_is_vacuumed_and_what_its_stream_has_not_read_stays_r88(
    run_dag: RunDag, lake: Lake, tmp_path: Path, warm_spark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.airflow.examples.vacuum_orders import vacuum_orders

    mine = Lake(lake.spark, tmp_path / "lake")
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(mine.root))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    mine.create("shop.orders", ORDERS, row_tracking=True)
    mine.sql("INSERT INTO {t} VALUES (1, 10, 'new')", "shop.orders")
    hook = TidemarkHook()
    source = hook.table("shop.orders")
    create_stream(hook.open_store(), name="unread", source=source, mode=StreamMode.STANDARD, at_version=1, who="a test")
    mine.sql("INSERT OVERWRITE {t} VALUES (2, 10, 'new')", "shop.orders")
    pass_time(mine.spark, [mine.root / "shop/orders"], hook.open_store(), timedelta(days=9))

    counted = Outcome(run_registered(vacuum_orders, run_conf={"dry_run": True})).returned("vacuum")
    assert (counted["files"], counted["bytes_past_retention"] > 0, mine.version("shop.orders")) == (0, True, 2)
    done = run_dag(vacuum_orders)
    assert (done.state, done.returned("vacuum")["files"]) == ("success", 0)
    (held,) = done.returned("vacuum")["held_by"]
    assert (held["stream"], held["offset"]) == ("unread", 1)
    advance_stream(hook.open_store(), "unread", 2, "a test", "seen")
    assert run_dag(vacuum_orders).returned("vacuum")["files"] == 1


@pytest.mark.spark
def test_lines_of_log_files_are_in_a_table_each_once(run_dag: RunDag, shop: Lake, tmp_path: Path) -> None:
    from tests.airflow.examples.landing import keep_landing, land_logs, report, reset, watch_landing

    logs = tmp_path / "logs"
    logs.mkdir()
    line = '{"at": "2026-03-01T00:00:00Z", "level": "%s", "message": "m"}\n'
    (logs / "messages_1.jsonl").write_text(line % "info" + '{"level": "debug", "at": "no time"}\n' + line % "warning")
    conf = {"logs": str(logs), "seconds": 3}
    first = run_dag(land_logs, at=DAY, conf=conf)
    assert first.state == "success"
    wanted = {"rows": 2, "errors": 1, "from_token": None, "to_token": "messages_1.jsonl:3", "is_empty": True}
    assert {name: first.returned("logs")[name] for name in wanted} == wanted
    with (logs / "messages_1.jsonl").open("a") as file:
        file.write(line % "error" + '{"level": "half of a li')
    (logs / "messages_2.jsonl").write_text(line % "info")
    second = run_dag(land_logs, at=DAY + timedelta(days=1), conf=conf)
    wanted = {"rows": 2, "errors": 0, "from_token": "messages_1.jsonl:3", "to_token": "messages_2.jsonl:1"}
    assert {name: second.returned("logs")[name] for name in wanted} == wanted
    assert [row[1] for row in shop.rows("shop.log_lines")] == ["error", "info", "info", "warning"]
    assert run_dag(land_logs, at=DAY + timedelta(days=2), conf=conf).returned("logs")["rows"] == 0
    (only,) = run_dag(report, at=DAY).returned("fresh")["channels"]
    assert (only["channel"], only["offset_token"], only["rows"]) == ("SHOP_LOGS", "messages_2.jsonl:1", 4)
    assert run_dag(watch_landing, at=DAY).task("all_write") == "success"
    kept = run_dag(keep_landing, at=DAY).returned("keep")
    wanted = {"table": "shop.log_lines", "swept": [], "idle": [], "files_removed": 2, "files_added": 1}
    assert [dict(one) for one in kept] == [wanted]
    assert len(shop.rows("shop.log_lines")) == 4
    moved = run_dag(reset, at=DAY, conf={"token": "messages_1.jsonl:3"}).returned("set_token")
    assert (moved["token_before"], moved["token"]) == ("messages_2.jsonl:1", "messages_1.jsonl:3")
    assert run_dag(land_logs, at=DAY + timedelta(days=3), conf=conf).returned("logs")["rows"] == 2


@pytest.mark.spark
def test_files_are_loaded_once_by_a_statement_and_by_a_pipe_and_failed_ones_after_a_refresh(
    run_dag: RunDag, shop: Lake, tmp_path: Path, warm_spark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.airflow.examples.load_orders import copy_orders, load_orders, refresh_orders, watch_pipes

    files = tmp_path / "in"
    files.mkdir()
    (files / "good.csv").write_text("id,status\n1,new\n2,paid\n")
    (files / "bad.csv").write_text("id,status\n3,new\nx,paid\n")
    conf = {"landing": str(files)}
    copied = run_dag(copy_orders, at=DAY, conf=conf).returned("copy")
    wanted = {"files": 2, "rows_loaded": 3, "errors_seen": 1, "table": "shop.orders_copied"}
    assert {name: copied[name] for name in wanted} == wanted
    assert shop.rows("shop.orders_copied") == [(1, "new"), (2, "paid"), (3, "new")]

    first = run_dag(load_orders, at=DAY, conf=conf)
    assert [first.task(name) for name in ("create", "wait", "load")] == ["success"] * 3
    assert (first.returned("wait")["files"], first.returned("load")["files_loaded"]) == (2, 1)
    monkeypatch.setattr(load_orders.get_task("wait"), "timeout", 0)
    second = run_dag(load_orders, at=DAY + timedelta(days=1), conf=conf)
    assert [second.task(name) for name in ("create", "wait", "load")] == ["success", "skipped", "skipped"]

    (files / "bad.csv").write_text("id,status\n3,new\n")
    sent: list[tuple[Any, str]] = []
    monkeypatch.setattr(smtplib, "SMTP", lambda **_: MailServer(sent))
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(MAIL))
    assert run_dag(watch_pipes).state == "success"
    ((to, message),) = sent
    assert "data@example.org" in to
    assert "1 of 2 files have errors. The first one is in file bad.csv, line 3" in message
    refreshed = Outcome(run_registered(refresh_orders, run_conf={"prefix": "b"})).returned("refresh")
    assert refreshed == {"pipe": "shop.orders_pipe", "queued": 1, "known": 0}
    assert run_dag(watch_pipes).state == "success"
    assert len(sent) == 1
    assert shop.rows("shop.orders_loaded") == [(1, "new"), (2, "paid"), (3, "new")]


@pytest.mark.spark
def test_a_report_is_computed_once_and_then_read_without_spark(
    run_dag: RunDag, shop: Lake, warm_spark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.airflow.examples.order_counts import order_counts

    first = run_dag(order_counts, at=DAY).returned("count")
    rows = [["new", 2]]
    assert (first["origin"], first["columns"], first["data"]) == ("spark", ["status", "n"], rows)
    assert first["why"] == "no answer of this text is kept"
    monkeypatch.setenv("TIDEMARK_SPARK_MASTER", "spark://127.0.0.1:1")  # a job could not run
    again = run_dag(order_counts, at=DAY + timedelta(days=1))
    second = again.returned("count")
    assert (second["origin"], second["location"], second["data"]) == ("cache", first["location"], rows)
    assert second["tables"] == first["tables"]
    assert [event["origin"] for event in events_of("order_counts")] == ["spark", "cache"]


def events_of(asset: str) -> list[dict[str, Any]]:
    """Extras of the events of an asset by its name, in order."""
    from airflow.models.asset import AssetEvent, AssetModel  # noqa: TID251 - a test looks from outside
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        return [dict(event.extra) for event in found.filter(AssetModel.name == asset).order_by(AssetEvent.id)]


@pytest.mark.spark
def test_tables_that_read_each_other_are_refreshed_level_by_level_as_of_one_point(
    run_dag: RunDag, shop: Lake, warm_spark: Path
) -> None:
    from tests.airflow.examples.kept_orders import keep_orders, refresh_kept, report_kept

    created = run_dag(keep_orders, at=DAY)
    assert created.state == "success"
    assert created.returned("busy")["created"] is True
    assert created.returned("total")["shape"] in ("sums", "rows")
    orders = shop.rows("shop.orders")
    counted = {row[1]: [one[1] for one in orders].count(row[1]) for row in orders}
    busy = sorted((customer, count) for customer, count in counted.items() if count > 1)
    assert [row[:2] for row in shop.rows("kept.busy")] == busy

    shop.sql("INSERT INTO {t} VALUES (91, 77, 'new'), (92, 77, 'new'), (93, 78, 'cancelled')", "shop.orders")
    outcome = run_dag(refresh_kept, at=DAY)
    assert outcome.state == "success"
    levels = outcome.returned("plan")
    assert [level["views"] for level in levels] == [["kept.total", "kept.valid"], ["kept.per_customer"], ["kept.busy"]]
    assert [row[:2] for row in shop.rows("kept.busy")] == sorted([*busy, (77, 2)])
    views = {view.name: view for view in list_views(TidemarkHook().open_store())}
    assert {view.fresh_at.isoformat() for view in views.values()} == {levels[0]["as_of"]}

    reported = run_dag(report_kept, at=DAY)
    assert reported.task("young") == "success"
    assert [one["state"] for one in reported.returned("refresh_total")] == ["unchanged"]


@pytest.mark.spark
def test_a_table_gets_a_key_and_is_reclustered_when_its_files_overlap(
    run_dag: RunDag, shop: Lake, warm_spark: Path
) -> None:
    from tests.airflow.examples.clustered_visits import cluster_visits

    shop.create("shop.visits", "customer BIGINT, day BIGINT")
    for _ in range(3):
        shop.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, id FROM range(100)", "shop.visits")
    rows = shop.rows("shop.visits")
    done = run_dag(cluster_visits, at=DAY)
    assert done.state == "success"
    (keyed,) = done.returned("keyed")
    assert (keyed["table"], keyed["how"], keyed["state"]) == ("shop.visits", "full", "done")
    assert (keyed["depth_before"], keyed["depth_after"]) == (3.0, 1.0)
    assert done.returned("plan") == [TidemarkHook().table_path("shop.visits")]
    ((again,),) = [done.returned("recluster")]
    assert (again["how"], again["why"]) == ("nothing", "depth 1 is within 2")
    assert shop.rows("shop.visits") == rows


@pytest.fixture
def quiet_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> SyntheticTable:
    """The log of a table `shop.orders`, made without Spark, and a store with a stream on it; files live for a day."""
    table = SyntheticTable(tmp_path / "shop" / "orders", {"delta.deletedFileRetentionDuration": "interval 1 day"})
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    hook = TidemarkHook()
    source = hook.table("shop.orders")
    create_stream(
        hook.open_store(), name="order_changes", source=source, mode=StreamMode.STANDARD, at_version=0, who="a test"
    )
    table.append()
    return table


def test_changes_are_passed_over_for_a_reason_and_a_stream_is_forgotten_once(
    run_dag: RunDag, quiet_shop: SyntheticTable, hook: TidemarkHook
) -> None:
    from tests.airflow.examples.orders import forget_orders, skip_orders

    skipped = run_registered(skip_orders, run_conf={"why": "loaded by hand"})
    assert Outcome(skipped).returned("skip")["version"] == quiet_shop.head() == 1
    assert stream_history(hook.open_store(), "order_changes")[-1].why == "loaded by hand"
    assert run_dag(forget_orders).returned("forget") is True
    assert list_streams(hook.open_store()) == ()
    assert run_dag(forget_orders).returned("forget") is False


def test_a_stream_goes_on_on_the_table_that_replaced_its_own(
    run_dag: RunDag, quiet_shop: SyntheticTable, hook: TidemarkHook
) -> None:
    from tests.airflow.examples.reloaded_orders import rebase_orders

    quiet_shop.replace()
    rebased = run_registered(rebase_orders, run_conf={"why": "loaded anew"})
    assert Outcome(rebased).returned("rebase") == {
        "stream": "order_changes", "table": "shop.orders", "mode": "standard", "version": 0, "created": False,
    }  # fmt: skip
    stands = get_stream(hook.open_store(), "order_changes")
    assert (stands.keys, stands.source.table_id) == (("id",), quiet_shop.table_id)


def test_a_stream_with_little_time_left_is_told_by_mail(
    run_dag: RunDag, quiet_shop: SyntheticTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.airflow.examples.watch_streams import watch_objects, watch_streams

    sent: list[tuple[Any, str]] = []
    monkeypatch.setattr(smtplib, "SMTP", lambda **_: MailServer(sent))
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(MAIL))
    done = run_dag(watch_streams)
    (at_risk,) = done.returned("watch")
    assert at_risk["stream"] == "order_changes"
    assert 23 < at_risk["hours_left"] <= 24
    ((to, message),) = sent
    assert "data@example.org" in to
    assert "Stream 'order_changes' on shop.orders has 2" in message
    assert run_dag(watch_objects).state == "success"
    (_, (_, message)) = sent
    assert "<b>warning</b>: stream order_changes is nearly stale" in message
    assert "Delta keeps what the stream needs until" in message


def test_a_change_stream_over_a_shop_is_made_altered_and_dropped(
    run_dag: RunDag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: TidemarkHook
) -> None:
    from tests.airflow.examples.watch_shop import expire_shop, forget_shop, watch_less, watch_shop

    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    for table in ("shop.orders", "shop.invoices"):
        singers(tmp_path / "lake", table, columns=[("id", "long"), ("amount", "long")])
    made = run_dag(watch_shop).returned("create")
    assert made["tables"] == ["shop.orders", "shop.invoices"]
    assert run_dag(watch_less).returned("alter")["tables"] == ["shop.orders"]
    assert get_change_stream(hook.open_store(), "shopchanges").options.exclude_delete
    expired = run_dag(expire_shop).returned("expire")
    assert (expired["change_stream"], expired["rows"]) == ("ShopChanges", 0)
    assert run_dag(forget_shop).returned("forget") is True


@pytest.fixture
def acted_on(
    airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_store: str
) -> Iterator[ViewWorld]:
    """The stream `s`, the dynamic table `shop.large`, and the change stream `names`, which watches singers."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", sqlite_store)
    monkeypatch.syspath_prepend(str(DAGS))
    world, hook = ViewWorld(tmp_path, sqlite_store), TidemarkHook()
    world.stream()
    world.view("shop.large", "source")
    singers(tmp_path / "lake", "music.singers", key="SingerId")
    tables, logs = lake_tables_of(hook), logs_root(hook.settings.workspace)
    create_pipe(world.store, "shop.files", "COPY INTO shop.t FROM '/in/'", queue=str(tmp_path / "queue"), by="a test")
    define_change_stream(world.store, "names", watch=["music.singers"], options={}, tables=tables, logs=logs)
    yield world
    world.store.close()


def test_the_form_does_the_one_act_that_is_chosen_on_the_object_that_is_named(
    run_dag: RunDag, acted_on: ViewWorld
) -> None:
    store = acted_on.store

    def done(action: str, name: str, **answers: Any) -> str:
        dag = importlib.reload(importlib.import_module("object_acts")).dag
        outcome = run_dag(dag, conf={"action": action, "name": name, **answers})
        assert [
            one.task_id for one in dag.tasks if outcome.task(one.task_id) not in ("skipped", "upstream_failed")
        ] in (
            ["act", action],
            ["act"],
        )
        return outcome.state

    assert (done("suspend_dynamic_table", "shop.large"), bool(get_view(store, "shop.large").suspended)) == (
        "success",
        True,
    )
    assert (done("resume_dynamic_table", "shop.large"), get_view(store, "shop.large").suspended) == ("success", None)
    assert (done("suspend_change_stream", "names"), get_change_stream(store, "names").tables) == ("success", ())
    assert done("resume_change_stream", "names") == "failed"
    assert done("resume_change_stream", "names", tables=["music.singers"]) == "success"
    assert [one.table.name for one in get_change_stream(store, "names").tables] == ["music.singers"]
    assert (done("pause_pipe", "shop.files"), get_pipe(store, "shop.files").paused_at is None) == ("success", False)
    assert (done("resume_pipe", "shop.files"), get_pipe(store, "shop.files").paused_at) == ("success", None)
    kinds = {"stream": "s", "change_stream": "names", "dynamic_table": "shop.large", "pipe": "shop.files"}
    for kind, name in kinds.items():
        assert (done(f"drop_{kind}", name), done(f"drop_{kind}", name, sure=name)) == ("failed", "success")
    left = (list_streams(store), list_change_streams(store), list_views(store), list_pipes(store))
    assert left == ((), (), (), ())


def test_a_pause_of_a_pipe_keeps_its_start_and_ends_with_a_resume(run_dag: RunDag, acted_on: ViewWorld) -> None:
    from tests.airflow.examples.load_orders import pause_orders

    name, store = "shop.orders_pipe", acted_on.store
    create_pipe(store, name, "COPY INTO shop.t FROM '/in/'", queue="/queue", by="a test")

    def done(day: int, action: str) -> Any:
        return run_dag(pause_orders, at=DAY + timedelta(days=day), conf={"action": action}).returned("alter")

    paused = done(0, "pause")
    since = datetime.fromisoformat(paused["paused_since"])
    assert (paused["existed"], get_pipe(store, name).paused_at) == (True, since)
    assert done(1, "pause") == paused
    resumed = {"pipe": name, "action": "resume", "existed": True, "paused_since": None}
    assert (done(2, "resume"), done(3, "resume"), get_pipe(store, name).paused_at) == (resumed, resumed, None)


MAIL = {"conn_type": "smtp", "host": "mail.example.org", "extra": {"from_email": "a@example.org", "disable_ssl": True}}


class MailServer:
    """What stands in for one: it keeps each message with its receivers."""

    def __init__(self, sent: list[tuple[Any, str]]) -> None:
        self.sent = sent

    def starttls(self, **_: Any) -> None: ...

    def ehlo(self, *_: Any) -> None: ...

    def close(self) -> None: ...

    def sendmail(self, from_addr: str, to_addrs: Any, msg: str, **_: Any) -> None:
        text = message_from_string(msg)
        bodies = [part.get_payload(decode=True) for part in text.walk() if not part.is_multipart()]
        self.sent.append((to_addrs, b"".join(body for body in bodies if isinstance(body, bytes)).decode()))


@pytest.fixture
def records(lake: Lake, tmp_path: Path, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop with two orders, a change stream on them with two partitions, and empty targets."""
    mine = Shop.at(lake.spark, tmp_path, monkeypatch.setenv)
    mine.change("INSERT INTO {t} VALUES (1, 10, 'new'), (2, 10, 'new')")
    mine.lake.create("shop.orders_mirror", ORDERS)
    mods = "mods ARRAY<STRUCT<keys: STRING, new_values: STRING, old_values: STRING>>"
    mine.lake.create("shop.order_changes", f"mod_type STRING, {mods}")
    return mine.open(partitions=2)


@pytest.mark.spark
def test_a_mirror_begins_with_the_rows_and_goes_on_with_the_records(
    run_dag: RunDag, records: Shop, warm_spark: Path
) -> None:
    from tests.airflow.examples.order_records import order_mirror

    records.change("DELETE FROM {t} WHERE id = 1")  # after the version that is backfilled: captured by the same run
    first = run_dag(order_mirror)
    records.check()
    assert (first.state, first.returned("backfill")["rows"]) == ("success", 2)
    assert records.lake.rows("shop.orders_mirror") == [(2, 10, "new")]
    records.change("UPDATE {t} SET status = 'paid'", "INSERT INTO {t} VALUES (3, 11, 'new')")
    second = run_dag(order_mirror)
    records.check()
    assert (second.state, second.returned("backfill")["found"]) == ("success", True)
    assert records.lake.rows("shop.orders_mirror") == [(2, 10, "paid"), (3, 11, "new")]


@pytest.mark.spark
def test_records_are_kept_and_delivered_again_after_a_reset(
    run_dag: RunDag, records: Shop, warm_spark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.airflow.examples.order_records import order_history, reset_order_history, watch_order_records

    records.change("INSERT INTO {t} VALUES (3, 11, 'new')")
    kept = run_dag(order_history)
    records.check()
    assert (kept.state, [kind for kind, _ in records.lake.rows("shop.order_changes")]) == ("success", ["INSERT"])
    assert kept.returned("finish")["left"] == 0

    assert Outcome(run_registered(reset_order_history, run_conf={"start": "earliest"})).state == "success"
    records.before = None  # another group of the same name
    assert run_dag(order_history).state == "success"
    records.check()
    assert len(records.lake.rows("shop.order_changes")) == 2

    assert run_dag(watch_order_records).task("stale") == "skipped"
    monkeypatch.setattr(watch_order_records.get_task("stale"), "hours_left", 10_000)
    (at_risk,) = run_dag(watch_order_records).returned("stale")
    assert (at_risk["consumer_group"], at_risk["failed"]) == ("history", {})


@pytest.mark.spark
def test_a_shops_database_is_replicated_held_recovered_and_let_go(
    run_dag: RunDag,
    source_server: PostgresServer,
    lake: Lake,
    tmp_path: Path,
    warm_spark: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.airflow.examples.shop_replication import (
        backfills_of_shop,
        drop_shop_replication,
        expire_shop_events,
        hold_shop_replication,
        recover_shop_replication,
        release_shop_replication,
        shop_event_files,
        shop_in_rounds,
        shop_is_replicated,
        shop_replication,
        shop_replication_in_steps,
        shop_within_seconds,
    )
    from tests.airflow.replicated_shop import ReplicatedShop, events_of

    database = ReplicatedShop.at(source_server, tmp_path, monkeypatch.setenv, orders=30)
    assert run_dag(shop_replication).state == "success"
    database.sql("DELETE FROM shop.orders WHERE id = 3")
    assert run_dag(shop_replication_in_steps).state == "success"
    in_steps = [kind for kind, _ in events_of("shop", "shop.orders", dag_id="shop_replication_in_steps")]
    assert in_steps == ["apply"]
    target = lake.spark.read.format("delta").load(str(tmp_path / "lake" / "replicated" / "shop_orders"))
    assert (target.count(), target.where("id = 3").count()) == (29, 0)
    customers = lake.spark.read.format("delta").load(str(tmp_path / "lake" / "replicated" / "shop_customers"))
    assert "credit" not in customers.columns
    assert run_dag(backfills_of_shop).task("request") == "skipped"
    assert run_dag(shop_is_replicated).state == "success"
    database.sql("DELETE FROM shop.orders WHERE id = 4")
    assert run_dag(shop_replication).state == "success"
    monkeypatch.setattr(shop_within_seconds.get_task("replicate.rounds"), "run_for_seconds", 0.1)
    monkeypatch.setattr(shop_in_rounds.get_task("rounds"), "run_for_seconds", 0.1)
    database.sql("DELETE FROM shop.orders WHERE id = 5")
    assert run_dag(shop_within_seconds).returned("replicate.rounds")["objects"]["shop.orders"]["events"] == 1
    assert run_dag(shop_in_rounds).returned("rounds")["rounds"] == 1
    assert run_dag(expire_shop_events).returned("expire")["events"] == 0  # nothing is a week old
    monkeypatch.setattr(shop_event_files.get_task("files"), "target", str(tmp_path / "events"))
    files = run_dag(shop_event_files).returned("files")
    assert files["events"] == {"shop_orders": 3, "_control": 1}
    assert len(list((tmp_path / "events" / "shop_orders").rglob("*.avro"))) == files["files"] - 1
    assert run_dag(shop_event_files).returned("files")["files"] == 0
    monkeypatch.setattr(expire_shop_events.get_task("expire"), "keep_days", "0")
    expired = run_dag(expire_shop_events).returned("expire")
    assert (expired["events"] > 0, expired["held"]) == (True, {})
    assert run_dag(hold_shop_replication).returned("pause")["state"] in ("draining", "paused")
    assert run_dag(release_shop_replication).returned("resume")["state"] == "running"
    (slot,), _ = database.in_source()
    database.sql(f"SELECT pg_drop_replication_slot('{slot}')")
    assert run_dag(shop_replication).state == "failed"
    assert database.status().replication.state.value == "failed_permanently"
    assert run_dag(recover_shop_replication).state == "success"
    again = run_dag(shop_replication)
    assert again.state == "success"
    assert {one.object.state.value for one in database.status().objects} == {"completed"}
    assert run_dag(drop_shop_replication).returned("drop") is True
    assert database.in_source() == ([], [])


@pytest.mark.spark
def test_a_table_gets_search_paths_that_an_upkeep_covers_once(
    run_dag: RunDag, shop: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    from tests.airflow.examples.search_orders import add_search, keep_search

    added = run_dag(add_search, at=DAY).returned("add")
    assert added == {"table": "shop.orders", "paths": ["EQUALITY(id)", "SUBSTRING(status)", "RANGE(customer)"]}
    kept = run_dag(keep_search, at=DAY).returned("keep")
    assert kept["commits"] == 1
    assert kept["files"] > 0
    assert run_dag(keep_search, at=DAY).returned("keep")["commits"] == 0
    (search,) = list_searches(hook.open_store())
    assert (search.table.name, search.files) == ("shop.orders", kept["files"])
