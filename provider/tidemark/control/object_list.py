"""The table of all objects, read: one by its name, all that fit, or one page of them, the worst first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

import sqlalchemy as sa

from tidemark.control.cursors import ListOrder, Ordered, Part
from tidemark.control.object_kinds import KINDS, Lag, Severity, kind_named
from tidemark.control.objects import portions
from tidemark.control.schema import objects
from tidemark.control.sentences import one_text
from tidemark.errors import InvalidArgument

__all__ = [
    "URGENCY",
    "ObjectOrder",
    "ObjectsPage",
    "ObjectsWish",
    "ShownObject",
    "among",
    "count_kinds",
    "find",
    "fitting",
    "folded_name_at",
    "live",
    "of_keys",
    "owner_dags",
    "page",
    "show_all",
]

_of = objects.c
_WORST = tuple(Severity)
URGENCY = sa.case({severity.value: rank for rank, severity in enumerate(_WORST)}, value=_of.severity, else_=0)
_PROBLEMS = (Severity.FAILED, Severity.WARNING)
_MOST_WORSE = 10_000  # with a value each, fewer than a statement may have: 32,766 in SQLite, 65,535 in PostgreSQL


class ObjectOrder(StrEnum):
    """The orders that a page of objects can have; kind and name decide between equals."""

    STATE = "state"  # the worst first
    KIND = "kind"
    NAME = "name"
    SINCE = "since"


@dataclass(frozen=True)
class ObjectsWish:
    """Which objects. `kind`: one that is registered. `state`: a subject's own word, or a severity. `problems`: failed
    ones and those with a warning alone. `search`: a part of the name, in any case.
    """

    kind: str | None = None
    state: str | None = None
    problems: bool = False
    search: str = ""

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise InvalidArgument(argument="kind", value=self.kind, problem=f"one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class ShownObject:
    """One live object. `since`: of this state; None if only a log tells the state. `problem_dags`: the DAGs whose
    readers may read the problem; none: nobody may who needs a right. `lag_seconds`: the age of the newest state of its
    source that it is known to have reached. It may instead be the age of the oldest change that it has not. `notice`:
    what lag or log tell, which is nothing of a run. `usual_seconds`: the usual lag that it is behind; None: it is not.
    """

    kind: str
    name: str
    uid: str
    within: str | None
    owner_dag: str | None
    state: str
    severity: Severity
    since: datetime | None
    problem: str | None
    problem_dags: tuple[str, ...] = ()
    lag_seconds: float | None = None
    lag_amount: int | None = None
    lag_unit: str | None = None
    notice: str | None = None
    usual_seconds: float | None = None

    @property
    def trouble(self) -> str | None:
        """Problem and notice in one text; None if there is neither."""
        return one_text(self.problem, self.notice)

    @property
    def lag_words(self) -> str | None:
        """The amount of the lag with its unit, such as `1 version`; None if there is none."""
        if self.lag_amount is None or self.lag_unit is None:
            return None
        return f"{self.lag_amount} {self.lag_unit.removesuffix('s') if self.lag_amount == 1 else self.lag_unit}"

    @property
    def view(self) -> Mapping[str, str] | None:
        """The address of its own view on the page; None if there is none."""
        view = kind_named(self.kind).view
        if view is None:
            return None
        return view(self.own_name, self.within)

    @property
    def own_name(self) -> str:
        """The name without that of the object that it belongs to."""
        return self.name if self.within is None else self.name[len(self.within) + 1 :]


@dataclass(frozen=True)
class ObjectsPage:
    """`total`: how many objects fit, on all pages. `cursor`: for the page that follows; None on the last one."""

    total: int
    objects: tuple[ShownObject, ...]
    cursor: str | None = None


def show_all(connection: sa.Connection, wish: ObjectsWish, *, now: datetime) -> tuple[ShownObject, ...]:
    """All that fit, the worst first, then by kind and name; also those whose lag alone is a problem at this moment."""
    found = _rows(connection, live(replace(wish, state=None, problems=False)))
    return fitting(_with_lags(connection, found, now), wish)


def fitting(found: Sequence[ShownObject], wish: ObjectsWish) -> tuple[ShownObject, ...]:
    """Those in the state that is asked for, the worst first, then by kind and name."""
    chosen = (one for one in found if _fits(one, wish))
    return tuple(sorted(chosen, key=lambda one: (_WORST.index(one.severity), one.kind, one.name)))


def page(
    connection: sa.Connection,
    wish: ObjectsWish,
    *,
    sort: ObjectOrder,
    descending: bool,
    part: Part,
    now: datetime,
    late: Mapping[tuple[str, str], Severity] = MappingProxyType({}),
) -> ObjectsPage:
    """That part of those that fit. `late`: objects by kind and uid that are worse than the store knows, by their logs
    or their lags. The worst 10,000 of them count. Raises CursorInvalid.
    """
    worse = _by_severity(late)
    wanted = live(wish, worse)
    total = sa.select(sa.func.count()).select_from(objects).where(*wanted)
    order = _order(sort, worse, descending=descending)
    query = order.taken(sa.select(objects, *order.key).where(*wanted), part)
    found = connection.execute(query).mappings().all()
    rows = _with_lags(connection, [_shown(row) for row in found[: part.limit]], now)
    return ObjectsPage(int(connection.execute(total).scalar_one()), rows, order.cursor(found, part.limit))


def find(connection: sa.Connection, kind: str, name: str, *, now: datetime) -> ShownObject:
    """The live object of that kind with that name, in any case, or that uid. Raises InvalidArgument."""
    named = (_of.folded_name == name.casefold()) | (_of.uid == name)
    rows = _rows(connection, [*live(ObjectsWish(kind=kind)), named])
    exact = tuple(row for row in rows if name in (row.name, row.uid)) or rows
    if len(exact) != 1:
        problem = f"{len(exact)} objects have that name; give the uid" if exact else f"no {kind} has that name or uid"
        raise InvalidArgument(argument="name", value=name, problem=f"{problem}. `objects list` names them all")
    (found,) = _with_lags(connection, exact, now)
    return found


def count_kinds(connection: sa.Connection) -> dict[str, int]:
    """How many objects of each kind live; kinds without any are left out."""
    query = sa.select(_of.kind, sa.func.count()).where(*live(ObjectsWish())).group_by(_of.kind)
    return {kind: int(count) for kind, count in connection.execute(query)}


def folded_name_at(connection: sa.Connection, kind: str, place: int) -> str | None:
    """The folded name at that place, from 0 on, of the live objects of that kind; None if there are fewer."""
    query = sa.select(_of.folded_name).where(*live(ObjectsWish(kind=kind))).order_by(_of.folded_name)
    found: str | None = connection.execute(query.limit(1).offset(place)).scalar_one_or_none()
    return found


def _order(sort: ObjectOrder, worse: Mapping[Severity, sa.ColumnElement[bool]], *, descending: bool) -> ListOrder:
    first = {
        ObjectOrder.STATE: Ordered(_urgency(worse), int, descending),
        ObjectOrder.KIND: Ordered(_of.kind, str, descending),
        ObjectOrder.NAME: Ordered(_of.folded_name, str, descending),
        ObjectOrder.SINCE: Ordered(_of.since, datetime, descending),
    }
    between_equals = (Ordered(_of.kind, str), Ordered(_of.folded_name, str), Ordered(_of.uid, str))
    return ListOrder(f"objects {sort} {descending}", (first[sort], *between_equals))


def of_keys(connection: sa.Connection, keys: Sequence[tuple[str, str]], *, now: datetime) -> tuple[ShownObject, ...]:
    """The live ones among these objects by kind and uid, in that order, with their lags."""
    found: dict[tuple[str, str], ShownObject] = {}
    for kind in dict.fromkeys(kind for kind, _ in keys):
        uids = [uid for own, uid in keys if own == kind]
        for some in portions(uids):
            wanted = [*live(ObjectsWish(kind=kind)), _of.uid.in_(some)]
            found.update(((kind, row.uid), row) for row in _rows(connection, wanted))
    return _with_lags(connection, [found[key] for key in keys if key in found], now)


def owner_dags(connection: sa.Connection, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str | None]:
    """The owners of these objects by kind and uid, also of those that live no more; None: no owner is known."""
    query = sa.select(_of.kind, _of.uid, _of.owner_dag)
    return {
        (row.kind, row.uid): row.owner_dag
        for wanted in among(set(keys))
        for row in connection.execute(query.where(wanted))
    }


def among(keys: Iterable[tuple[str, str]]) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions for the objects with these kinds and uids, of one kind and 500 objects at most each."""
    ordered = sorted(keys)
    for kind in dict.fromkeys(kind for kind, _ in ordered):
        for some in portions([uid for own, uid in ordered if own == kind]):
            yield (_of.kind == kind) & _of.uid.in_(some)


def live(
    wish: ObjectsWish, worse: Mapping[Severity, sa.ColumnElement[bool]] = MappingProxyType({})
) -> list[sa.ColumnElement[bool]]:
    """The conditions on the table of objects for those that live and fit. `worse`: which are worse than it says."""
    wanted: list[sa.ColumnElement[bool]] = [_of.ended_at.is_(None), _of.kind.in_(KINDS)]
    if wish.kind is not None:
        wanted.append(_of.kind == wish.kind)
    if wish.state is not None:
        wanted.append((_of.state == wish.state) | _has_severity(wish.state, worse))
    if wish.problems:
        wanted.append(sa.or_(_of.severity.in_([severity.value for severity in _PROBLEMS]), *worse.values()))
    if wish.search:
        wanted.append(_of.folded_name.contains(wish.search.casefold(), autoescape=True))
    return wanted


def _has_severity(said: str, worse: Mapping[Severity, sa.ColumnElement[bool]]) -> sa.ColumnElement[bool]:
    if not worse or said not in _WORST:
        return _of.severity == said
    return _urgency(worse) == _WORST.index(Severity(said))


def _by_severity(late: Mapping[tuple[str, str], Severity]) -> dict[Severity, sa.ColumnElement[bool]]:
    """For each severity of a problem, the condition for the objects that have it by a look."""
    known = (key for key, severity in late.items() if severity in _PROBLEMS and key[0] in KINDS)
    worst = sorted(known, key=lambda key: (_WORST.index(late[key]), key))[:_MOST_WORSE]
    having = {severity: [key for key in worst if late[key] is severity] for severity in _PROBLEMS}
    return {severity: _is_one_of(severity.value, keys) for severity, keys in having.items() if keys}


def _is_one_of(name: str, keys: Sequence[tuple[str, str]]) -> sa.ColumnElement[bool]:
    """The condition for these objects. They are a table of that name in the statement. It has each uid once as a value,
    however often it has the condition.
    """
    told = sa.select(_of.kind, _of.uid).where(sa.or_(*among(keys))).cte(f"{name}_by_looks")
    return sa.tuple_(_of.kind, _of.uid).in_(sa.select(told.c.kind, told.c.uid))


def _urgency(worse: Mapping[Severity, sa.ColumnElement[bool]]) -> sa.ColumnElement[int]:
    """The rank of the worse of what the store knows and what a look has found."""
    ranks = {_WORST.index(severity): condition for severity, condition in worse.items()}
    told = [(condition & (rank < URGENCY), rank) for rank, condition in ranks.items()]
    return sa.case(*told, else_=URGENCY) if told else URGENCY


def _fits(one: ShownObject, wish: ObjectsWish) -> bool:
    wanted = wish.state is None or wish.state in (one.state, one.severity.value)
    return wanted and (not wish.problems or one.severity in _PROBLEMS)


def _rows(connection: sa.Connection, wanted: Sequence[sa.ColumnElement[bool]]) -> tuple[ShownObject, ...]:
    return tuple(_shown(row) for row in connection.execute(sa.select(objects).where(*wanted)).mappings())


def _with_lags(connection: sa.Connection, rows: Sequence[ShownObject], now: datetime) -> tuple[ShownObject, ...]:
    lags: dict[tuple[str, str], Lag] = {}
    for kind in sorted({row.kind for row in rows}):
        uids = sorted(row.uid for row in rows if row.kind == kind)
        for some in portions(uids):
            found = kind_named(kind).lags_of(connection, some, now)
            lags.update(((kind, uid), lag) for uid, lag in found.items())
    return tuple(_lagging(row, lags.get((row.kind, row.uid), Lag())) for row in rows)


def _lagging(row: ShownObject, lag: Lag) -> ShownObject:
    """A lag that is overdue is a warning, unless the state is worse."""
    late = lag.overdue is not None and row.severity is not Severity.FAILED
    return replace(
        row,
        severity=Severity.WARNING if late else row.severity,
        lag_seconds=lag.seconds,
        lag_amount=lag.amount,
        lag_unit=lag.unit,
        notice=lag.overdue,
    )


def _shown(row: sa.RowMapping) -> ShownObject:
    return ShownObject(
        kind=row["kind"],
        name=row["name"],
        uid=row["uid"],
        within=row["within"],
        owner_dag=row["owner_dag"],
        state=row["state"],
        severity=Severity(row["severity"]),
        since=row["since"],
        problem=row["problem"],
        problem_dags=() if row["problem_dags"] is None else tuple(json.loads(row["problem_dags"])),
    )
