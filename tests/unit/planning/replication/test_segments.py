"""Events are cut where their order tells what becomes of a row, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemark.replication.model.replication import (
    Column,
    LogPosition,
    Shown,
    TableSchema,
    TypeKind,
    UnifiedType,
    WriteMode,
)
from tidemark.replication.planning.barriers import Barrier, BarrierKind, SegmentPlan, plan_segments
from tidemark.replication.planning.types import change_of, decimal_of, delta_type, widens


def column(name: str, kind: TypeKind = TypeKind.INTEGER, **more: object) -> Column:
    return Column(name, UnifiedType(kind), kind.value, **more)  # type: ignore[arg-type]


def of(*columns: Column) -> TableSchema:
    return TableSchema(columns)


KEY = column("id", key=True)
SCHEMA = of(KEY, column("v"))
WIDER = of(KEY, column("v"), column("w"))


def at(commit: int, sequence: int = 1) -> LogPosition:
    return LogPosition(f"{commit:016X}", sequence)


def cut(*barriers: Barrier, mode: WriteMode = WriteMode.MERGE, most: int | None = None) -> SegmentPlan:
    return plan_segments(
        start=LogPosition(f"{1:016X}"),
        end=LogPosition(f"{99:016X}"),
        schema=SCHEMA,
        mode=mode,
        barriers=barriers,
        most=most,
    )


def told(plan: SegmentPlan) -> list[tuple[int, str, LogPosition, LogPosition]]:
    return [(one.number, one.kind.value, one.start, one.end) for one in plan.segments]


FIRST, LAST = LogPosition(f"{1:016X}"), LogPosition(f"{99:016X}")


def test_without_a_barrier_all_is_one_segment() -> None:
    assert told(cut()) == [(1, "rows", FIRST, LAST)]


def test_a_truncate_is_a_segment_of_its_own() -> None:
    plan = cut(Barrier(at(5, 2), BarrierKind.TRUNCATE), Barrier(at(5, 3), BarrierKind.TRUNCATE))
    assert told(plan) == [
        (1, "rows", FIRST, at(5, 2)),
        (2, "truncate", at(5, 2), at(5, 3)),
        (3, "truncate", at(5, 3), at(5, 4)),
        (4, "rows", at(5, 4), LAST),
    ]


def test_a_schema_cuts_only_where_it_changes_something() -> None:
    same = Barrier(at(3), BarrierKind.SCHEMA, schema=of(KEY, replace(column("v"), filled="7")))
    wider = Barrier(at(5), BarrierKind.SCHEMA, schema=WIDER)
    plan = cut(wider, same)
    assert [(one.kind.value, one.start, one.schema) for one in plan.segments] == [
        ("rows", FIRST, same.schema),
        ("schema", at(5), WIDER),
        ("rows", at(5, 2), WIDER),
    ]
    assert plan.schema == WIDER


def test_an_unknown_key_stops_before_it_and_a_reason_says_why_it_stops() -> None:
    plan = cut(Barrier(at(5, 2), BarrierKind.TOASTED_KEY), Barrier(at(6), BarrierKind.TRUNCATE))
    assert (told(plan), plan.toasted_key, plan.end) == ([(1, "rows", FIRST, at(5, 2))], True, at(5, 2))
    plan = cut(Barrier(at(5), BarrierKind.SCHEMA, schema=of(KEY, column("v", TypeKind.DATE))))
    assert (plan.needs_backfill, plan.end) == ("column v changed its type from integer to date", at(5))
    assert plan.schema == SCHEMA


def test_rows_of_events_are_cut_by_schemas_alone() -> None:
    plan = cut(
        Barrier(at(5), BarrierKind.TRUNCATE),
        Barrier(at(6), BarrierKind.SCHEMA, schema=WIDER),
        mode=WriteMode.APPEND_ONLY,
    )
    assert [one.kind.value for one in plan.segments] == ["rows", "schema", "rows"]


def test_no_more_segments_than_asked_for() -> None:
    barriers = [Barrier(at(n), BarrierKind.TRUNCATE) for n in range(5, 9)]
    plan = cut(*barriers, most=2)
    assert (told(plan), plan.end) == (told(cut(*barriers))[:2], at(5, 2))
    assert cut(*barriers, most=99) == cut(*barriers)


@pytest.mark.parametrize(
    ("old", "new", "wide"),
    [
        ("SMALLINT", "INT", True),
        ("INT", "BIGINT", True),
        ("BIGINT", "INT", False),
        ("BIGINT", "DOUBLE", False),
        ("INT", "DECIMAL(12,2)", True),
        ("INT", "DECIMAL(11,2)", False),
        ("DECIMAL(5,2)", "DECIMAL(7,4)", True),
        ("DECIMAL(5,2)", "DECIMAL(6,4)", False),
        ("DECIMAL(5,2)", "DECIMAL(9,1)", False),
        ("DATE", "TIMESTAMP_NTZ", True),
        ("DATE", "TIMESTAMP", False),
        ("STRING", "INT", False),
        ("INT", "STRING", False),
    ],
)
def test_only_what_keeps_every_value_is_widened(old: str, new: str, wide: bool) -> None:
    assert widens(old, new) is wide


@pytest.mark.parametrize(
    ("precision", "scale", "digits"),
    [(5, 2, (5, 2)), (3, -2, (5, 0)), (3, 5, (5, 5)), (38, 38, (38, 38)), (39, 0, None), (None, None, None)],
)
def test_a_decimal_is_as_wide_as_its_values(
    precision: int | None, scale: int | None, digits: tuple[int, int] | None
) -> None:
    kind = UnifiedType(TypeKind.DECIMAL, precision, scale)
    assert decimal_of(kind) == digits
    assert delta_type(kind) == ("STRING" if digits is None else "DECIMAL({},{})".format(*digits))
    assert delta_type(UnifiedType(TypeKind.ARRAY, item=kind)) == f"ARRAY<{delta_type(kind)}>"


def test_a_renamed_column_is_known_by_its_number_and_suspected_without_one() -> None:
    old = of(replace(KEY, number=1), column("a", number=2))
    new = of(replace(KEY, number=1), column("b", number=2))
    change = change_of(old, new)
    assert [(one.name, other.name) for one, other in change.renamed] == [("a", "b")]
    assert (change.added, change.dropped, change.needs_backfill) == ((), (), None)
    guessed = change_of(of(KEY, column("a")), of(KEY, column("b")))
    assert guessed.needs_backfill == "column b came when a went, which may be one column renamed"


def test_a_column_made_anew_is_another() -> None:
    change = change_of(of(KEY, column("a", number=2)), of(KEY, column("a", number=2)))
    assert not change.is_something
    old, new = (of(replace(KEY, number=1), column("a", number=number)) for number in (2, 3))
    change = change_of(old, new)
    assert [one.number for one in (*change.dropped, *change.added)] == [2, 3]
    assert change.is_something


def test_what_the_log_does_not_tell_needs_a_backfill_for_a_mirror_alone() -> None:
    unknown = of(KEY, column("v"), column("w", unknown_fill=True))
    assert change_of(SCHEMA, unknown).needs_backfill == "column w was added with a default that its log does not have"
    assert change_of(SCHEMA, unknown, keyed=False).needs_backfill is None
    assert change_of(SCHEMA, of(column("id"), column("v"))).needs_backfill == "it no longer has a key"
    assert change_of(SCHEMA, of(KEY, column("v", key=True))).rekeyed


def test_a_change_of_type_that_delta_does_not_have_needs_a_backfill_where_rows_of_before_count() -> None:
    old, new = (
        of(KEY, Column("v", UnifiedType(TypeKind.STRING), native))
        for native in ("character(3)", "character varying(9)")
    )
    assert change_of(old, new).needs_backfill == "column v changed its type from character(3) to character varying(9)"
    assert change_of(old, new, keyed=False).needs_backfill is None
    wider = of(KEY, Column("v", UnifiedType(TypeKind.STRING), "text"))
    assert (change_of(new, wider).needs_backfill, change_of(new, wider).is_something) == (None, False)


REWRITTEN = "column v changed its type from integer to bigint, and its rows were rewritten"


def test_rows_that_were_rewritten_under_another_type_may_have_any_value() -> None:
    old = of(KEY, Column("v", UnifiedType(TypeKind.INTEGER), "integer"))
    wide = Column("v", UnifiedType(TypeKind.LONG), "bigint")
    assert change_of(old, of(KEY, wide)).needs_backfill is None
    rewritten = of(KEY, replace(wide, unknown_fill=True))
    assert change_of(old, rewritten).needs_backfill == REWRITTEN
    assert change_of(old, rewritten, keyed=False).needs_backfill is None
    assert change_of(old, rewritten, empty=True).needs_backfill is None
    assert change_of(rewritten, rewritten).needs_backfill is None


def test_a_target_without_rows_needs_a_backfill_for_what_it_cannot_be_and_for_no_row() -> None:
    unknown = of(KEY, column("v"), column("w", unknown_fill=True))
    assert change_of(SCHEMA, unknown).needs_backfill is not None
    assert change_of(SCHEMA, unknown, empty=True).needs_backfill is None
    assert change_of(SCHEMA, of(column("id"), column("v")), empty=True).needs_backfill == "it no longer has a key"
    assert change_of(SCHEMA, of(KEY, column("v", TypeKind.DATE)), empty=True).needs_backfill is not None


def test_what_a_target_without_rows_may_have_counts_from_its_first_row_on() -> None:
    unknown = of(KEY, column("v"), column("w", unknown_fill=True))
    early = Barrier(at(5), BarrierKind.SCHEMA, schema=unknown)

    def plan(until: LogPosition | None) -> SegmentPlan:
        return plan_segments(
            start=FIRST, end=LAST, schema=SCHEMA, mode=WriteMode.MERGE, barriers=[early], empty_until=until
        )

    assert plan(at(5)).needs_backfill is None
    assert plan(at(4)).needs_backfill == plan(None).needs_backfill is not None


def test_a_column_that_is_shown_otherwise_needs_a_backfill_where_rows_of_before_count() -> None:
    plain = of(KEY, Column("v", UnifiedType(TypeKind.STRING), "text"))
    hashed = of(KEY, Column("v", UnifiedType(TypeKind.STRING), "text", shown=Shown.HASHED))
    assert change_of(plain, hashed).needs_backfill == "column v is hashed now, and was plain"
    assert change_of(plain, hashed, keyed=False).needs_backfill is None
    assert change_of(hashed, plain).needs_backfill == "column v is plain now, and was hashed"
    assert change_of(hashed, hashed).needs_backfill is None
    number = of(KEY, Column("v", UnifiedType(TypeKind.INTEGER), "integer"))
    assert change_of(number, hashed, keyed=False).needs_backfill is not None
