"""R80–R89 with Delta's own VACUUM and log cleanup, while time passes: what streams need stays as long as promised."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.passing_time import pass_time
from tidemark.client import Version, connect
from tidemark.client.lake import Lake
from tidemark.control.store import ControlStore
from tidemark.errors import SourceRecreated, StreamStale, TableNotFound, VersionVacuumed
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION
from tidemark.streams.planning.staleness import EXTENSION, FILE_RETENTION, LOG_RETENTION, OWN_RETENTION, Staleness

pytestmark = pytest.mark.spark
DAY = timedelta(days=1)
TRACKED = "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'"


def few_tasks(session: SparkSession) -> SparkSession:
    """VACUUM lists a table by as many tasks as this says, ten thousand by default."""
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    return session


class Shore:
    """A connected client, and a table `t` (id, v) with rows 1 a and 2 b, whose name has a space in it."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path, self.place = spark, path, path / "the src" / "t"
        self.url = f"sqlite:///{path}/control.db"
        self.lake: Lake = connect(spark, self.url, lake_root=str(path), who="ann")
        self.t = f"delta.`{self.place}`"
        self.sql(f"CREATE TABLE {{t}} (id BIGINT, v STRING) USING delta TBLPROPERTIES ({TRACKED})")
        self.sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b')")

    def sql(self, *texts: str) -> None:
        for text in texts:
            self.spark.sql(text.replace("{t}", self.t))

    def create(self, name: str = "s", **how: object) -> None:
        self.lake.create_stream(name, on=self.t, **how)  # type: ignore[arg-type]

    def pass_days(self, days: float) -> None:
        pass_time(self.spark, [self.place], ControlStore(self.url), days * DAY)

    def rows(self, name: str = "s") -> list[tuple[object, ...]]:
        return sorted((row.id, row.v, row[ACTION]) for row in self.lake.stream(name).collect())

    def staleness(self, name: str = "s") -> Staleness:
        return self.lake.describe_stream(name).staleness

    def property(self, name: str) -> str | None:
        return DeltaLog.open(str(self.place)).state().metadata.configuration.get(name)

    def files(self) -> int:
        return sum(1 for _ in self.place.glob("*.parquet"))

    def ruthless_vacuum(self) -> None:
        """As somebody runs it who has turned Delta's check off."""
        session = few_tasks(self.spark.newSession())
        session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        session.sql(f"VACUUM {self.t} RETAIN 0 HOURS")


@pytest.fixture
def shore(spark: SparkSession, tmp_path: Path) -> Iterator[Shore]:
    made = Shore(few_tasks(spark.newSession()), tmp_path)
    yield made
    made.lake.close()


REPLACED = [(1, "a", "DELETE"), (2, "b", "DELETE"), (3, "c", "INSERT")]


def test_R80_R81_R88_what_a_stream_needs_stays_until_its_limit_and_not_longer(shore: Shore) -> None:
    shore.create()
    shore.sql("INSERT OVERWRITE {t} VALUES (3, 'c')")
    assert shore.lake.describe_stream("s").stale_after is not None
    shore.pass_days(8)
    assert shore.staleness() is Staleness.FORECAST
    before = shore.lake.describe_stream("s")
    assert before.bytes_kept == before.bytes_past_retention
    assert (before.bytes_kept or 0) > 0

    dry = shore.lake.vacuum(shore.t, dry_run=True, max_extension_days=14)
    assert (dry.files, dry.bytes, dry.bytes_past_retention) == (0, 0, before.bytes_past_retention)
    assert shore.property(EXTENSION) is None

    kept = shore.lake.vacuum(shore.t, max_extension_days=14)
    assert [(one.stream, one.offset) for one in kept.held_by] == [("s", 1)]
    assert (kept.losing, shore.files(), shore.rows()) == ((), 2, REPLACED)
    about = shore.lake.describe_stream("s")
    assert (about.staleness, about.stale) == (Staleness.FRESH, False)
    assert 5.9 * 24 < about.hours_left < 6.1 * 24
    assert shore.property(FILE_RETENTION) == "interval 14 days"

    shore.pass_days(6.5)
    late = shore.lake.vacuum(shore.t)
    assert [(one.stream, one.version) for one in late.losing] == [("s", 2)]
    assert (shore.files(), shore.property(FILE_RETENTION), shore.property(OWN_RETENTION)) == (1, None, None)
    lost = shore.lake.describe_stream("s")
    assert (lost.staleness, lost.lost_version, lost.hours_left) == (Staleness.STALE, 2, 0)
    assert "VACUUM has removed" in lost.invalid_reason
    with pytest.raises(VersionVacuumed):
        shore.rows()


def test_R88_files_that_delta_has_forgotten_stay_too(shore: Shore) -> None:
    """A checkpoint drops removals that are past the retention; from then on VACUUM takes the files as unknown ones."""
    shore.create()
    shore.sql("DELETE FROM {t} WHERE id = 1", "INSERT OVERWRITE {t} VALUES (3, 'c')")
    shore.pass_days(9)
    shore.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    shore.sql("INSERT INTO {t} VALUES (4, 'd')")
    done = shore.lake.vacuum(shore.t, max_extension_days=14)
    assert done.files == 0
    assert shore.rows() == [*REPLACED, (4, "d", "INSERT")]
    without = shore.lake.vacuum(shore.t, stretch=False)
    assert (without.files, shore.rows()) == (0, [*REPLACED, (4, "d", "INSERT")])


def test_R88_after_consumption_retention_falls_back(shore: Shore) -> None:
    shore.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 10 days')")
    shore.create()
    shore.create("early", at=Version(1))
    shore.sql("INSERT OVERWRITE {t} VALUES (3, 'c')")
    shore.pass_days(6.5)
    shore.lake.vacuum(shore.t)
    stretched = [shore.property(name) for name in (EXTENSION, FILE_RETENTION)]
    assert stretched == ["interval 14 days", "interval 14 days"]
    version = DeltaLog.open(str(shore.place)).head()
    assert shore.lake.vacuum(shore.t).settings == {}
    assert DeltaLog.open(str(shore.place)).head() == version + 2  # what VACUUM itself logs
    shore.pass_days(2)
    shore.sql(f"VACUUM {shore.t}")  # somebody else's
    shore.lake.advance_stream("s")
    assert (shore.lake.vacuum(shore.t).files, shore.rows("early")) == (0, REPLACED)
    shore.lake.advance_stream("early")
    done = shore.lake.vacuum(shore.t)
    assert (done.files, done.held_by, shore.files()) == (1, (), 1)
    back = [shore.property(name) for name in (FILE_RETENTION, LOG_RETENTION, OWN_RETENTION)]
    assert back == [None, "interval 10 days", None]


def test_R10_R88_initial_rows_and_views_are_read_past_the_retention_of_delta(shore: Shore, tmp_path: Path) -> None:
    """They read the table as it was, which Delta refuses past its own retention."""
    shore.create("mirror", show_initial_rows=True)
    view = f"v_{tmp_path.name.replace('-', '_')}"
    shore.sql(f"CREATE VIEW {view} AS SELECT x.id, y.v FROM {{t}} x JOIN {{t}} y ON x.id = y.id")
    shore.lake.create_stream("joined", on=view)
    shore.sql("UPDATE {t} SET v = 'z' WHERE id = 1", "INSERT OVERWRITE {t} VALUES (3, 'c')")
    shore.pass_days(9)
    shore.lake.vacuum(shore.t, stretch=False)
    assert shore.rows("mirror") == [(1, "a", "INSERT"), (2, "b", "INSERT")]
    assert shore.rows("joined") == REPLACED
    assert {shore.staleness("mirror"), shore.staleness("joined")} == {Staleness.FRESH}
    shore.sql(f"DROP VIEW {view}")


def test_R84_what_an_outside_vacuum_took_is_said_at_the_next_look_and_never_without_need(shore: Shore) -> None:
    """What came and went inside the window is not needed by its net change, but by each of its steps."""
    shore.create("net")
    shore.create("steps", mode="every_change")
    shore.create("appended", mode="append_only")
    shore.sql("INSERT INTO {t} VALUES (3, 'c')", "DELETE FROM {t} WHERE id = 3")
    shore.ruthless_vacuum()
    assert (shore.staleness("net"), shore.rows("net")) == (Staleness.FRESH, [])
    for name in ("steps", "appended"):
        about = shore.lake.describe_stream(name)
        assert (about.staleness, about.lost_version) == (Staleness.STALE, 2), name
        with pytest.raises(VersionVacuumed):
            shore.lake.stream(name).collect()
    shore.create("later")
    shore.sql("UPDATE {t} SET v = 'y' WHERE id = 1")
    assert (shore.staleness("later"), len(shore.rows("later"))) == (Staleness.FRESH, 2)


def test_R87_raising_retention_does_not_revive_a_stale_stream(shore: Shore) -> None:
    shore.create()
    shore.sql("INSERT OVERWRITE {t} VALUES (3, 'c')")
    shore.pass_days(8)
    shore.sql("VACUUM {t}")
    assert shore.staleness() is Staleness.STALE
    shore.lake.vacuum(shore.t, max_extension_days=90)
    about = shore.lake.describe_stream("s")
    assert about.stale_after is not None
    assert about.stale_after > about.created_on + 80 * DAY
    assert (about.staleness, about.stale) == (Staleness.STALE, True)


def test_R84_R88_log_cleanup_leaves_what_a_guarded_stream_needs(shore: Shore) -> None:
    shore.create()
    shore.sql("UPDATE {t} SET v = 'z' WHERE id = 1")
    shore.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    for _ in range(3):
        shore.pass_days(13)
        shore.lake.vacuum(shore.t, max_extension_days=60)
        shore.sql("INSERT INTO {t} VALUES (7, 'g')", "INSERT INTO {t} VALUES (7, 'g')")
    assert len(shore.rows()) == 8
    assert shore.staleness() is Staleness.FRESH
    shore.pass_days(30)
    shore.lake.vacuum(shore.t, max_extension_days=0)
    shore.sql("INSERT INTO {t} VALUES (7, 'g')", "INSERT INTO {t} VALUES (7, 'g')")
    about = shore.lake.describe_stream("s")
    assert (about.staleness, about.lost_version) == (Staleness.STALE, 2)
    with pytest.raises((StreamStale, VersionVacuumed)):
        shore.rows()


def test_a_source_that_is_restored_replaced_dropped_or_renamed_in_the_window(shore: Shore, tmp_path: Path) -> None:
    """Each goes on rightly, or ends in its own error; a vacuum of the table goes on in any case."""
    name = f"t_{tmp_path.name.replace('-', '_')}"
    shore.sql(f"CREATE TABLE {name} USING delta LOCATION '{shore.place}'")
    shore.create()
    shore.sql("INSERT INTO {t} VALUES (3, 'c')", "RESTORE TABLE {t} TO VERSION AS OF 1")
    shore.pass_days(8)
    shore.lake.vacuum(shore.t, max_extension_days=14)
    shore.sql(f"ALTER TABLE {name} RENAME TO {name}_b")
    assert shore.rows() == []
    shore.sql(f"CREATE OR REPLACE TABLE {name}_b (id BIGINT, v STRING) USING delta LOCATION '{shore.place}'")
    assert shore.lake.vacuum(shore.t).held_by == ()
    with pytest.raises(SourceRecreated):
        shore.rows()
    assert shore.staleness() is Staleness.STALE
    shore.sql(f"DROP TABLE {name}_b")
    moved = shore.place.with_name("moved")
    shore.place.rename(moved)
    with pytest.raises(TableNotFound):
        shore.rows()
    assert shore.lake.describe_stream("s").stale_after is None


def test_a_table_without_streams_is_vacuumed_by_its_own_retention(shore: Shore) -> None:
    shore.sql("INSERT OVERWRITE {t} VALUES (3, 'c')", "DELETE FROM {t}")
    shore.pass_days(8)
    shore.sql("INSERT INTO {t} VALUES (4, 'd')")
    dry = shore.lake.vacuum(shore.t, dry_run=True)
    done = shore.lake.vacuum(shore.t)
    assert (dry.files, done.files, done.retain_hours, done.settings) == (2, 2, 168, {})
    assert dry.bytes == done.bytes
    assert shore.files() == 1
