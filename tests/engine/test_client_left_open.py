"""A client's transaction that was submitted and left is finished by the next one; a bad write is refused at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.errors import (
    CommitRefused,
    ConstraintViolated,
    InvalidArgument,
    MissingMergeKey,
    StatementRefused,
    StreamLocked,
    TargetDoesNotFit,
    TransactionOpen,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.submit import submit

pytestmark = pytest.mark.spark

NEW = "INSERT INTO delta.`{root}/src` VALUES ({id}, {n})"
FIRST = "INSERT INTO mart.first SELECT id, n FROM s"
SECOND = "INSERT INTO mart.second SELECT id, n FROM s"


class Notebook:
    """A source with the stream s, two targets, a clock that a test may set forward."""

    def __init__(self, spark, root):
        self.spark, self.root, self.ahead = spark, root, timedelta()
        store = f"sqlite:///{root}/control.db"
        self.lake = connect(spark, store, lake_root=str(root), clock=self.now, who="ann")
        tracked = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        put_table(spark, root / "src", f"CREATE TABLE {{t}} (id BIGINT, n INT) USING delta {tracked}")
        for name in ("first", "second"):
            put_table(spark, root / "mart" / name, "CREATE TABLE {t} (id BIGINT, n INT) USING delta")
        self.lake.create_stream("s", on=f"delta.`{root}/src`")

    def now(self):
        return datetime.now(UTC) + self.ahead

    def add(self, id, n=1):
        self.spark.sql(NEW.format(root=self.root, id=id, n=n))

    def constrain(self, how):
        self.spark.sql(f"ALTER TABLE delta.`{self.root}/mart/second` {how}")

    def rows(self, name):
        return sorted(row.id for row in self.spark.read.format("delta").load(f"{self.root}/mart/{name}").collect())

    def head(self, name):
        return DeltaLog.open(f"{self.root}/mart/{name}").head()

    def offset(self):
        return self.lake.describe_stream("s").offset_version

    def write_both(self):
        with self.lake.transaction() as tx:
            tx.sql(FIRST)
            tx.sql(SECOND)

    def dies_after_its_submit(self):
        """The process is gone when the job is ordered; then its lease runs out."""
        context, tx = self.lake._context, self.lake.transaction()
        tx.sql(FIRST)
        tx.sql(SECOND)

        def die(spec):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            submit(Runtime(context.store, run=die, paths=context.paths), get_transaction(context.store, tx.key))
        return tx


@pytest.fixture
def notebook(spark, tmp_path):
    made = Notebook(spark, tmp_path)
    yield made
    made.lake.close()


def test_a_row_that_breaks_the_second_target_leaves_a_transaction_that_the_next_one_finishes(notebook):
    notebook.constrain("ADD CONSTRAINT positive CHECK (n > 0)")
    notebook.add(1, -1)
    with pytest.raises(ConstraintViolated) as broken:
        notebook.write_both()
    assert "lake.finish('s')" in broken.value.__notes__[0]
    assert (notebook.rows("first"), notebook.rows("second"), notebook.offset()) == ([1], [], 0)
    with pytest.raises(TransactionOpen, match=r"lake\.finish"):
        notebook.lake.advance_stream("s")
    notebook.add(2)
    with pytest.raises(ConstraintViolated) as again:
        notebook.lake.sql(SECOND)
    assert "left open on s" in again.value.__notes__[0]
    notebook.constrain("DROP CONSTRAINT positive")
    notebook.lake.sql(SECOND)
    assert (notebook.rows("first"), notebook.rows("second"), notebook.offset()) == ([1], [1, 2], 2)
    assert notebook.lake.finish("s") is None
    notebook.lake.drop_stream("s")


def test_a_client_that_died_after_its_submit_is_finished_on_request_or_by_the_next(notebook):
    notebook.add(1)
    notebook.dies_after_its_submit()
    with pytest.raises(StreamLocked, match="of ann until"):
        notebook.lake.finish("s")
    notebook.ahead += timedelta(minutes=11)
    assert [w.to_version for w in notebook.lake.finish("s").windows] == [1]
    assert (notebook.rows("first"), notebook.rows("second"), notebook.offset()) == ([1], [1], 1)
    notebook.add(2)
    notebook.dies_after_its_submit()
    notebook.ahead += timedelta(minutes=11)
    notebook.add(3)
    with notebook.lake.transaction() as reading:
        assert reading.stream("s").count() == 2
        with pytest.raises(CommitRefused, match="read it again in a new transaction"):
            reading.sql(FIRST)
        reading.rollback()
    assert (notebook.rows("first"), notebook.rows("second"), notebook.offset()) == ([1, 2], [1, 2], 2)
    notebook.write_both()
    assert (notebook.rows("first"), notebook.rows("second"), notebook.offset()) == ([1, 2, 3], [1, 2, 3], 3)


def test_columns_keys_and_sql_are_checked_when_the_write_is_given_and_the_transaction_goes_on(notebook):
    notebook.add(1)
    notebook.spark.sql(f"CREATE TABLE delta.`{notebook.root}/mart/narrow` (id BIGINT) USING delta")
    with notebook.lake.transaction() as tx:
        with pytest.raises(TargetDoesNotFit, match="it has no column n"):
            tx.append("s", "mart.narrow")
        with pytest.raises(MissingMergeKey, match="order_id"):
            tx.merge("s", "mart.first", ["order_id"])
        with pytest.raises(StatementRefused, match="nope"):
            tx.sql("INSERT INTO mart.first SELECT nope, n FROM s")
        with pytest.raises(InvalidArgument, match="it must be 'fail' or 'add'"):
            tx.append("s", "mart.narrow", schema_evolution="grow")
        assert not get_transaction(notebook.lake._context.store, tx.key).plan.statements
        tx.append("s", "mart.narrow", schema_evolution="add")
        tx.merge("s", "mart.first", "id")
        assert (notebook.head("narrow"), notebook.head("first")) == (0, 0)
    assert (notebook.rows("narrow"), notebook.rows("first"), notebook.offset()) == ([1], [1], 1)
    assert notebook.lake.describe_stream("s").health.failures == 3
