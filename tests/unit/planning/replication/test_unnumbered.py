"""A column that came while a hidden one went stays hidden, where columns have no numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from tidemark.model.source_address import SourceKind
from tidemark.model.streams import TableRef
from tidemark.replication.driver.hidden_values import chosen
from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.jobs import BackfillObject, ColumnRules
from tidemark.replication.model.replication import (
    Column,
    FoundObject,
    InvalidValues,
    NameCase,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    ReplicationOptions,
    Selection,
    Shown,
    TableSchema,
    TypeKind,
    UnifiedType,
    WriteMode,
)
from tidemark.replication.planning.another_cluster import LastSeen, elsewhere
from tidemark.replication.planning.selection import select
from tidemark.replication.planning.unnumbered import held_now, unsure_columns

TEXT = UnifiedType(TypeKind.STRING)
EVERYTHING = Selection()
MASKED = ReplicationOptions("lake", mask_columns=("s.t.email", "*.*.phone*"))
T = ObjectName("s", "t")


def schema(*names: str) -> TableSchema:
    return TableSchema(tuple(Column(name, TEXT, "text", key=name == "id") for name in names))


class Looks:
    """The memory of a table from look to look."""

    def __init__(self, options: ReplicationOptions = MASKED, selection: Selection = EVERYTHING) -> None:
        self.options, self.selection = options, selection
        self.held: tuple[HeldColumn, ...] = ()
        self.known: Collection[str] = ()

    def look(self, *names: str) -> FoundObject:
        found = FoundObject(T, "s.t", schema(*names), any_case=NameCase.COLUMNS)
        held = held_now({"s.t": self.held}, {"s.t": self.known}, (found,))
        (wanted,) = select(self.selection, (found,), options=self.options, held=held)
        self.held, self.known = wanted.held, names
        return wanted

    @property
    def rules(self) -> ColumnRules:
        return ColumnRules(self.selection, self.options.mask_columns, held=self.held, by_name=True)


def how(found: FoundObject) -> dict[str, Shown]:
    return {column.name: column.shown for column in found.schema.columns if column.shown is not Shown.PLAIN}


@pytest.mark.parametrize("hidden", ["email", "phone2"])
def test_it_is_hidden_as_the_one_that_went_and_said_so_until_a_pattern_names_it(hidden: str) -> None:
    looks = Looks()
    looks.look("id", hidden)
    for _ in range(2):
        found = looks.look("id", "contact")
        assert how(found) == {"contact": Shown.MASKED}
        (notice,) = found.notices
        assert notice.startswith(f"column contact came when {hidden} went, and may be the same, so it is masked")
    looks.options = replace(MASKED, mask_columns=(*MASKED.mask_columns, "s.t.contact"))
    assert looks.look("id", "contact").notices == ()
    looks.options = ReplicationOptions("lake")
    assert how(looks.look("id", "contact")) == {}


def test_of_several_that_went_the_one_that_hides_more_counts() -> None:
    looks = Looks(selection=Selection(exclude=("s.t.ssn",)))
    looks.look("id", "email", "ssn")
    found = looks.look("id", "a", "b")
    assert ([column.name for column in found.schema.columns], found.excluded) == (["id"], ("a", "b"))


def test_a_column_that_comes_alone_is_shown() -> None:
    looks = Looks()
    looks.look("id", "email")
    assert how(looks.look("id", "email", "city")) == {"email": Shown.MASKED}
    assert how(looks.look("id", "city")) == {}  # the hidden one went, and nothing came
    assert how(looks.look("id", "city", "later")) == {}
    looks.look("id", "city", "Email")
    assert how(looks.look("id", "city", "EMAIL")) == {"EMAIL": Shown.MASKED}


def test_between_two_looks_it_is_unsure() -> None:
    looks = Looks()
    looks.look("id", "email", "city")
    now = schema("id", "contact", "City")
    assert unsure_columns(looks.rules, T, now, ("id", "city")) == {"contact"}
    assert unsure_columns(looks.rules, T, schema("id", "phone3"), ("id",)) == frozenset()  # a pattern hides it
    assert unsure_columns(looks.rules, T, now, ("id", "city"), there=("EMAIL",)) == frozenset()  # it comes later
    assert unsure_columns(replace(looks.rules, by_name=False), T, now, ()) == frozenset()


def test_a_copy_that_begins_between_two_looks_leaves_it_out() -> None:
    looks = Looks()
    looks.look("id", "email")
    target = TableRef("t", "/nowhere", "")
    one = ReplicatedObject("u", "r", T, "s.t", schema("id", "email"), WriteMode.MERGE, target, ObjectState.ACTIVE)
    request = BackfillObject(
        replication_uid="r", stream="shop", object=one, kind=SourceKind.MYSQL, number=1, event_log="/nowhere",
        system_id="", invalid_values=InvalidValues.FAIL, batches=0, expected_rows=1, partitions=1, rules=looks.rules,
    )  # fmt: skip
    assert [column.name for column in chosen(request, schema("id", "contact")).columns] == ["id"]
    assert [column.name for column in chosen(request, schema("id", "email", "city")).columns] == ["id", "email", "city"]


def test_another_server_has_the_hidden_columns_by_their_names() -> None:
    looks = Looks()
    looks.look("id", "email")
    last = LastSeen("u", "s.t", T, T.text, None, frozenset({"id", "email"}), looks.held)
    there = elsewhere([last], (), [FoundObject(T, "s.t", schema("id", "contact"), any_case=NameCase.COLUMNS)])
    assert there.held == {"u": looks.held}
