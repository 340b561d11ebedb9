"""Each act by a command leaves a row in the history of acts: who, what, on which object, and why."""

from __future__ import annotations

import getpass
import inspect
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import sqlalchemy as sa
from airflow.utils import platform

from tests.airflow.command_line import run_airflow
from tests.airflow.monitored import Monitored
from tests.architecture.test_command_line_page import commands
from tests.control.change_stream_model import Clock
from tests.control.kept_objects import drifted
from tests.control.replication_model import World, at, found
from tests.guarantees.view_world import ViewWorld
from tests.unit.lake.delta_directories import add as added
from tests.unit.lake.delta_directories import commit, singers
from tests.until import wait_until
from tests.warm_spark import hand_over
from tidemark.change_streams.model.backfill import BackfilledTable
from tidemark.change_streams.worker import defining
from tidemark.change_streams.worker.groups import create_group
from tidemark.cli import get_tidemark_cli_commands
from tidemark.clustering.worker.tables import register_clustered
from tidemark.control.object_acts import DoneAct, acts_of, newest_acts
from tidemark.control.object_kinds import KINDS
from tidemark.control.schema import acts
from tidemark.control.store import ControlStore
from tidemark.hooks.lake_tables import lake_tables_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.jobs.files import read_spec, write_result
from tidemark.lake.log_paths import logs_root, written_files_path
from tidemark.materialized.model.definitions import KeptKind, TargetLag
from tidemark.model.codec import to_plain
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.worker.definitions import create_pipe, get_pipe
from tidemark.replication.model.jobs import ForgottenEventFiles
from tidemark.streams.worker.streams import stream_history
from tidemark.streams.worker.transfer import export_streams

pytestmark = pytest.mark.airflow

STATEMENT = "COPY INTO shop.orders FROM @landing"
WHY = "the night; 'it' was \"late\" – ünïcode"
REFUSED = -1


@dataclass(frozen=True)
class Step:
    """A command as it is typed, and the rows that it leaves: kind, act, and name of the object. `again`: how many rows
    a second run leaves; REFUSED: it is refused, and leaves none.
    """

    words: str
    rows: tuple[tuple[str, str, str], ...]
    again: int = 0

    @property
    def command(self) -> tuple[str, str]:
        """Group and name."""
        group, name, *_ = self.words.split()
        return group, name


def one(words: str, kind: str, act: str, name: str, again: int = 0) -> Step:
    return Step(words, ((kind, act, name),), again)


def of_view(kind: str) -> list[Step]:
    return [
        one("views refresh shop.large --by-next-run", kind, "refresh", "shop.large", again=1),
        one("views suspend SHOP.large", kind, "suspend", "shop.large"),
        one("views resume shop.large", kind, "resume", "shop.large"),
        one("views drop shop.large --yes", kind, "drop", "shop.large", again=REFUSED),
    ]


STREAMS = [
    one("streams create new --on shop.orders --at 0", "stream", "create", "new"),
    one("streams advance new --to 1", "stream", "advance", "new", again=1),
    one("streams rebase new --force", "stream", "rebase", "new", again=1),
    one("streams recreate new --at 1 --yes", "stream", "recreate", "new", again=1),
    one("streams create NEW --on shop.orders --or-replace", "stream", "create", "new", again=1),
    one("streams replay orders --from {start} --yes", "stream", "replay", "orders", again=REFUSED),
    one("streams finish open", "stream", "finish", "open"),
    one("streams release left", "stream", "release", "left", again=REFUSED),
    one("streams import {file} --or-replace", "stream", "import", "orders", again=1),
    Step("streams import {file} --if-not-exists", ()),
    one("streams drop new --yes", "stream", "drop", "NEW", again=REFUSED),
]
GROUPS = [
    one("consumer-groups pause names mirror", "consumer_group", "pause", "names/mirror"),
    one("consumer-groups resume NAMES mirror", "consumer_group", "resume", "names/mirror"),
    one("consumer-groups reset names mirror --from now --yes", "consumer_group", "reset", "names/mirror", again=1),
    one("consumer-groups drop names mirror --yes", "consumer_group", "drop", "names/mirror", again=REFUSED),
    one("change-streams suspend names", "change_stream", "suspend", "names"),
    one("change-streams resume names --on music.singers", "change_stream", "resume", "names"),
    one("change-streams drop names --yes", "change_stream", "drop", "names", again=REFUSED),
]
PIPES = [
    one("pipes pause shop.load", "pipe", "pause", "shop.load"),
    one("pipes resume shop.load", "pipe", "resume", "shop.load"),
    one("pipes drop shop.load --yes", "pipe", "drop", "shop.load", again=REFUSED),
]
CLUSTERED = [
    one("clustering suspend shop.singers", "clustered_table", "suspend", "shop.singers"),
    one("clustering resume shop.singers", "clustered_table", "resume", "shop.singers"),
]
REPLICATED = [
    one("replications pause R", "replication", "pause", "r"),
    one("replications resume r", "replication", "resume", "r"),
    one("replications backfill r s.orders", "replicated_table", "backfill", "r/s.orders"),
    one("replications backfill r s.items s.orders --action stop", "replicated_table", "stop", "r/s.items"),
    one("replications backfill r s.late --action restart", "replicated_table", "restart", "r/s.late"),
    one("replications backfill r --all", "replication", "backfill", "r"),
    one("replications drop r --without-source --yes", "replication", "drop", "r", again=REFUSED),
]
REPLICATED[3] = Step(
    REPLICATED[3].words, (("replicated_table", "stop", "r/s.items"), ("replicated_table", "stop", "r/s.orders"))
)
STEPS = [*STREAMS, *GROUPS, *PIPES, *CLUSTERED, *REPLICATED, *of_view("dynamic_table"), *of_view("materialized_view")]

ELSEWHERE = {
    ("replications", "recover"): "test_replication_acts.py, with a source",
    ("replications", "forget-files"): "below, with a job",
    ("change-streams", "backfill"): "below, with a job",
    ("streams", "relocate"): "below",
    ("streams", "redo"): "below",
    ("streams", "abandon"): "test_stuck_streams.py",
    ("streams", "recover"): "below",
}
"""Acting commands of other tests."""

OF_NO_OBJECT = {
    ("results", "clear"), ("clean", "clean"), ("db", "migrate"), ("db", "prune"), ("spark", "start"), ("spark", "stop"),
    ("ingest", "tokens add"), ("ingest", "tokens remove"), ("ingest", "serve"),
}  # fmt: skip
"""Commands that change something, and no object that the page lists. Airflow's audit log has them, but for `serve`."""


LOOKS = {
    "acts", "check", "describe", "discover", "emit", "errors", "estimate", "export", "history", "info", "lineage",
    "list", "offered", "overview", "partitions", "run", "show", "status", "tokens list",
}  # fmt: skip
"""Names of commands that change nothing."""


def test_every_acting_command_takes_a_reason_and_is_in_a_table(airflow_home: Path) -> None:
    acting = {(group, name) for group, name, flags in commands() if "--why" in flags}
    assert {step.command for step in STEPS} | ELSEWHERE.keys() == acting
    others = {(group, name) for group, name, _ in commands()} - acting
    assert {(group, name) for group, name in others if name not in LOOKS} == OF_NO_OBJECT
    audited = {where for where, source in sources() if source.startswith("@acting\n")}
    assert audited == acting | OF_NO_OBJECT - {("ingest", "serve")}


def sources() -> Iterator[tuple[tuple[str, str], str]]:
    """The function of each command as it is written, by group and name."""
    tidemark: Any = get_tidemark_cli_commands()[0]
    for group in tidemark.subcommands:
        for command in getattr(group, "subcommands", [group]):
            for one in getattr(command, "subcommands", [command]):
                name = one.name if one is command else f"{command.name} {one.name}"
                yield (group.name, name), inspect.getsource(inspect.unwrap(one.func))


def test_every_act_of_the_page_is_one_of_a_command_in_the_same_words() -> None:
    offered = {(kind, act.name) for kind in KINDS for act in acts_of(kind)}
    by_command = {(kind, act) for step in STEPS for kind, act, _ in step.rows}
    assert offered - by_command == {("replication", "recover")}  # ELSEWHERE


@pytest.fixture
def store(
    airflow_home: Path, use: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ControlStore:
    """The control store of the default connection, and an empty lake."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    url = f"sqlite:///{tmp_path}/control.db"
    use(url)
    made = ControlStore(url)
    made.migrate()
    return made


def history(store: ControlStore) -> list[DoneAct]:
    """Oldest first."""
    return list(reversed(store.read(lambda c: newest_acts(c, kind=None, uid=None, limit=1000))))


def said(act: DoneAct) -> tuple[str, str, str]:
    return act.kind, act.act, act.name


def type_(words: str, *more: str) -> int:
    done = run_airflow("tidemark", *words.split(), *more)
    assert "Traceback" not in done.stderr
    return done.returncode


def carry_out(store: ControlStore, steps: list[Step], **names: str) -> None:
    for step in steps:
        words, before = step.words.format(**names), len(history(store))
        if "--dry-run" in flags_of(step):
            assert type_(words, "--why", WHY, "--dry-run") == 0, words
            assert len(history(store)) == before, words
        assert type_(words, "--why", WHY) == 0, words
        kept = history(store)[before:]
        assert sorted(map(said, kept)) == sorted(step.rows), words
        assert all((act.who, act.why, act.by_command) == (getpass.getuser(), WHY, True) for act in kept)
        before = len(history(store))
        assert type_(words, "--why", "again") == (1 if step.again == REFUSED else 0), words
        assert len(history(store)) - before == max(step.again, 0), words
    assert drifted(store) == []


def flags_of(step: Step) -> set[str]:
    (flags,) = (flags for group, name, flags in commands() if (group, name) == step.command)
    return flags


def test_acts_on_streams_leave_their_rows(store: ControlStore, tmp_path: Path) -> None:
    made = Monitored(tmp_path / "lake", store.url)
    made._clock(hours=3)
    for name in ("orders", "open", "left"):
        made._stream(name)
        made._commit(name, times=2)
    made._consume("first", "orders")
    for name in ("open", "left"):
        made._begin("manual__left", name)
    start = str(made.tables["orders"].head() - 2)
    file = str(tmp_path / "streams.json")
    assert type_("streams export --stream orders --output", file) == 0
    carry_out(store, STREAMS, start=start, file=file)


def test_acts_on_change_streams_and_their_groups_leave_their_rows(store: ControlStore, tmp_path: Path) -> None:
    change_stream(store, tmp_path)
    carry_out(store, GROUPS)


def change_stream(store: ControlStore, root: Path) -> None:
    """`names` watches singers, and the group `mirror` reads it."""
    singers(root / "lake", "music.singers", key="SingerId", versions=3)
    hook = TidemarkHook()
    logs = logs_root(hook.settings.workspace)
    defining.create(store, "names", watch="music.singers", options={}, tables=lake_tables_of(hook), logs=logs)
    create_group(store, "names", "mirror", "earliest")


def test_acts_on_pipes_leave_their_rows(store: ControlStore) -> None:
    create_pipe(store, "shop.load", STATEMENT, queue=queue_path("/lake", "shop.load"), by="ana")
    carry_out(store, PIPES)


def clustered(root: Path) -> None:
    """The table `shop.singers`, which has a key."""
    table = singers(root / "lake", "shop.singers")
    key = json.dumps({"clusteringColumns": [["SingerId"]], "domainName": "delta.clustering"})
    domain = {"domainMetadata": {"domain": "delta.clustering", "configuration": key, "removed": False}}
    commit(table, 1, domain, added("a"))


def test_acts_on_clustered_tables_leave_their_rows(store: ControlStore, tmp_path: Path) -> None:
    clustered(tmp_path)
    hook = TidemarkHook()
    register_clustered(store, hook.open_table, hook.table("shop.singers"), by="ana")
    carry_out(store, CLUSTERED)


@pytest.mark.parametrize("act", ["suspend", "resume"])
def test_a_command_that_registers_a_table_is_one_act(store: ControlStore, tmp_path: Path, act: str) -> None:
    """It takes two writes then."""
    clustered(tmp_path)
    assert type_(f"clustering {act} shop.singers") == 0
    assert [(*said(one), one.why) for one in history(store)] == [("clustered_table", act, "shop.singers", "")]


@pytest.mark.parametrize("kind", [KeptKind.DYNAMIC_TABLE, KeptKind.MATERIALIZED_VIEW])
def test_acts_on_views_leave_their_rows(store: ControlStore, tmp_path: Path, kind: KeptKind) -> None:
    made = ViewWorld(tmp_path / "views", store.url)
    made.clock.now = datetime.now(UTC) - timedelta(minutes=2)
    made.view("shop.large", "source", kind=kind, lag=TargetLag(timedelta(minutes=10)))
    made.refresh("shop.large")
    carry_out(store, of_view(kind.value))


def test_acts_on_replications_and_their_tables_leave_their_rows(store: ControlStore, tmp_path: Path) -> None:
    world = World(ControlStore(store.url), tmp_path / "event_logs", clock=Clock(datetime.now(UTC)))
    world.start("s.orders", "s.items")
    world.register(*(found(name) for name in ("s.orders", "s.items", "s.late")))
    world.capture()
    world.backfill("s.orders")
    world.backfill("s.late")
    carry_out(store, REPLICATED)


def test_a_stream_that_follows_its_table_or_is_put_right_leaves_its_row(store: ControlStore, tmp_path: Path) -> None:
    made = Monitored(tmp_path / "lake", store.url)
    made._clock(hours=3)
    for name in ("orders", "left"):
        made._stream(name)
        made._commit(name, times=2)
    made._begin("manual__left", "left")
    (tmp_path / "lake/shop/orders").rename(tmp_path / "lake/shop/moved")
    for words in ("streams relocate orders --to shop.moved", "streams redo left"):
        assert type_(words, "--why", WHY) == 0, words
    assert type_("streams relocate orders --to shop.moved", "--why", "again") == 0
    assert [(one.act, one.name, one.why) for one in history(store)] == [
        ("relocate", "orders", WHY),
        ("redo", "left", WHY),
    ]
    assert WHY in stream_history(store, "orders")[-1].why


def test_a_stream_that_is_recovered_leaves_its_row(
    store: ControlStore, tmp_path: Path, use: Callable[[str], None]
) -> None:
    made = Monitored(tmp_path / "lake", store.url)
    made._clock(hours=3)
    made._stream("orders")
    made._commit("orders", times=1)
    made._consume("first", "orders")
    made.store.close()
    shutil.copy(tmp_path / "control.db", tmp_path / "older.db")
    made._commit("orders", times=1)
    made._consume("second", "orders")
    use(f"sqlite:///{tmp_path}/older.db")
    older = ControlStore(f"sqlite:///{tmp_path}/older.db")
    for more in (("--dry-run",), ()):
        assert history(older) == []
        assert type_("streams recover orders", "--why", WHY, *more) == 0
    (kept,) = history(older)
    assert (*said(kept), kept.why) == ("stream", "recover", "orders", WHY)
    assert type_("streams recover orders", "--why", "again") == 1
    assert len(history(older)) == 1


def test_forgotten_event_files_leave_a_row(
    store: ControlStore, tmp_path: Path, spark_submit: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SPARK_MODE", "submit")
    world = World(ControlStore(store.url), tmp_path / "event_logs", clock=Clock(datetime.now(UTC)))
    world.start("s.orders")
    place = Path(unquote(urlsplit(written_files_path(world.replication.event_log)).path))
    place.parent.mkdir(exist_ok=True)
    shutil.move(singers(tmp_path, "written"), place)
    for known in (at(16), None):
        spark_submit(answering(ForgottenEventFiles(known)))
        assert type_(f"replications forget-files r {tmp_path}/files --yes", "--why", WHY) == 0
    (kept,) = history(store)
    assert (*said(kept), kept.why) == ("replication", "forget-files", "r", WHY)
    assert kept.values == {"target": f"file://{tmp_path}/files"}


def test_a_job_leaves_its_row_once_it_has_done_the_act(
    store: ControlStore, tmp_path: Path, spark_submit: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SPARK_MODE", "submit")
    change_stream(store, tmp_path)
    singers(tmp_path / "lake", "music.mirror")
    backfill = "change-streams backfill names --group new --table music.singers --target music.mirror"
    spark_submit("exit 9")
    assert type_(backfill, "--why", WHY) == 1
    assert history(store) == []
    spark_submit(answering(BackfilledTable(rows=3, found=False, version=1)))
    for _ in range(2):
        assert type_(backfill, "--why", WHY) == 0
    (kept,) = history(store)
    assert (*said(kept), kept.why) == ("consumer_group", "backfill", "names/new", WHY)
    assert kept.values == {"table": "music.singers", "target": "music.mirror"}


def test_a_refresh_leaves_its_row_if_something_has_changed(
    store: ControlStore, tmp_path: Path, spark_submit: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SPARK_MODE", "submit")
    made = ViewWorld(tmp_path / "views", store.url)
    made.clock.now = datetime.now(UTC) - timedelta(minutes=2)
    made.view("shop.large", "source", lag=TargetLag(timedelta(minutes=10)))
    made.refresh("shop.large")
    made.source.append()
    queue = tmp_path / "queue"
    queue.mkdir()
    spark_submit(hand_over(queue))
    with ThreadPoolExecutor(1) as driver:
        driven = driver.submit(drive_one, made, queue)
        assert type_("views refresh SHOP.large --mode full", "--why", WHY) == 0
        driven.result()
    assert type_("views refresh shop.large", "--why", "again") == 0
    (kept,) = history(store)
    assert (*said(kept), kept.why, kept.values) == ("dynamic_table", "refresh", "shop.large", WHY, {"mode": "full"})


def drive_one(world: ViewWorld, queue: Path) -> None:
    """The next job that is laid into the queue, as the world's drivers do it."""
    wait_until(lambda: any(queue.glob("*.spec")))
    (request,) = queue.glob("*.spec")
    spec = read_spec(request.read_text().strip())
    write_result(spec.result_uri, world.driver(spec).run())
    request.with_suffix(".said").touch()
    request.with_suffix(".done").write_text("0")


def answering(report: object) -> str:
    """A script in the place of a driver, which answers that report."""
    code = (
        "import json, sys; from tidemark.jobs.files import read_spec, write_result;"
        "from tidemark.model.jobs import JobResult;"
        "write_result(read_spec(sys.argv[2]).result_uri, JobResult(json.loads(sys.argv[1])))"
    )
    path, plain = os.pathsep.join(sys.path), json.dumps(to_plain(report))
    return f"PYTHONPATH={path} {sys.executable} -c '{code}' '{plain}' \"$spec\""


def test_an_act_that_is_done_is_told_though_the_store_has_failed_before_its_row(
    store: ControlStore, tmp_path: Path
) -> None:
    made = Monitored(tmp_path / "lake", store.url)
    made._stream("left")
    made._commit("left", times=2)
    made._begin("manual__left", "left")
    store.write(lambda c: c.execute(sa.text("ALTER TABLE tidemark_act RENAME TO tidemark_act_away")))
    said = run_airflow("tidemark", "streams", "redo", "left")
    assert (said.returncode, "continues with the targets as they are now" in said.stdout) == (0, True), said.stderr
    assert "The act is done, but the history of acts lacks it: The control store" in said.stderr


@pytest.mark.parametrize("why", ["x" * 1001, "half of a pair: \udcff"])
def test_a_reason_that_no_store_keeps_is_refused_before_anything_is_done(store: ControlStore, why: str) -> None:
    create_pipe(store, "shop.load", STATEMENT, queue=queue_path("/lake", "shop.load"), by="ana")
    assert type_("pipes pause shop.load", "--why", why) == 1
    assert get_pipe(store, "shop.load").paused_at is None
    assert history(store) == []


def test_airflows_audit_log_has_each_attempt_with_the_command(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models import Log  # noqa: TID251 - as Airflow's page shows it
    from airflow.utils.session import create_session

    words = ["tidemark", "pipes", "pause", "shop.unknown_pipe", "--why", "for the audit of commands"]
    monkeypatch.setattr("sys.argv", ["airflow", *words])
    assert run_airflow(*words).returncode == 1
    with create_session() as session:
        query = session.query(Log).filter(Log.event == "cli_tidemark_act", Log.extra.contains("the audit of commands"))
        (kept,) = query.all()
        assert (kept.owner, json.loads(kept.extra)["full_command"]) == (getpass.getuser(), str(["airflow", *words]))


def test_a_metadata_database_that_is_away_keeps_nobody_from_acting(store: ControlStore) -> None:
    create_pipe(store, "shop.load", STATEMENT, queue=queue_path("/lake", "shop.load"), by="ana")
    away = {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql+psycopg2://tidemark:secret-word@127.0.0.1:1/nowhere",
        "AIRFLOW_CONN_TIDEMARK_DEFAULT": '{"conn_type": "tidemark"}',
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    words = ["tidemark", "pipes", "pause", "shop.load", "--output", "json"]
    said = subprocess.run(
        [sys.executable, "-m", "airflow", *words],
        env={**os.environ, **away},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [row["after"] for row in json.loads(said.stdout)] == ["PAUSED"]
    assert [one.act for one in history(store)] == ["pause"]


def test_a_user_without_a_name_is_known_by_the_number(store: ControlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a user of its own. Airflow's name of the user is of this process alone."""
    platform.getuser.cache_clear()
    create_pipe(store, "shop.load", STATEMENT, queue=queue_path("/lake", "shop.load"), by="ana")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 123456)
    assert type_("pipes pause shop.load") == 0
    assert [one.who for one in history(store)] == ["uid 123456"]
    assert "LOGNAME" not in os.environ
    platform.getuser.cache_clear()  # other tests have a name


def test_more_streams_than_a_statement_takes_are_imported_with_a_row_each(store: ControlStore, tmp_path: Path) -> None:
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/other.db").many(1)
    document = export_streams(made.store)
    (stream,) = document["streams"]
    many = [
        {**stream, "stream": {**stream["stream"], "name": f"bulk_{number:05}", "uid": str(uuid.UUID(int=number))}}
        for number in range(1_200)
    ]
    (tmp_path / "many.json").write_text(json.dumps({**document, "streams": many}))
    assert type_(f"streams import {tmp_path}/many.json --no-check", "--why", WHY) == 0
    count = store.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(acts)).scalar_one())
    assert count == 1_200
