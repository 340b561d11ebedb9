"""From what a DAG says to what is written ahead: one `PlannedWrite` per target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemark.delivery.planning.quarantine import with_quarantine
from tidemark.errors import InvalidArgument, SqlCompilationError, StatementRefused, TableNotFound, TargetNotFound
from tidemark.model.statements import PlannedWrite, SchemaEvolution, WriteAs
from tidemark.streams.planning.arguments import evolution_of, names_of

if TYPE_CHECKING:
    from tidemark.sql.statements import ParsedStatement
    from tidemark.streams.planning.stream_sql.tables import CreatedTable

__all__ = [
    "INTO",
    "MODES",
    "OF_TARGETS",
    "TableUri",
    "WriteRequest",
    "created_table_of",
    "filling",
    "insert_of",
    "names_of",
    "parsed_sql",
    "planned_writes",
    "quarantine_of",
    "require_all_read",
    "require_targets",
    "streams_of",
    "write_requests",
]

TableUri = Callable[[str], str]  # a table's name → its canonical URI
OF_TARGETS = ("target", "write_as", "keys", "sql", "tables", "schema_evolution", "quarantine")  # and `stream`
INTO = "INSERT INTO {} "
MODES = "'append', 'merge', 'sql' or a function as 'package.module:function'"


@dataclass(frozen=True)
class WriteRequest:
    """The arguments of one writing task, rendered."""

    streams: tuple[str, ...]
    targets: tuple[str, ...]
    write_as: str
    keys: tuple[str, ...] = ()
    sql: str | None = None
    tables: tuple[str, ...] = ()
    schema_evolution: str = SchemaEvolution.FAIL
    quarantine: str | None = None

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> WriteRequest:
        """From operator arguments by name. Raises InvalidArgument for a quarantine of what cannot have one."""
        quarantine = quarantine_of(given.get("quarantine"))
        if quarantine is not None and given.get("write_as") not in (WriteAs.APPEND, WriteAs.MERGE):
            problem = "only an append or a merge has one; SQL and functions choose their rows themselves"
            raise InvalidArgument(argument="quarantine", value=quarantine, problem=problem)
        return cls(
            streams=names_of("stream", given.get("stream")),
            targets=names_of("target", given.get("target")),
            write_as=str(given.get("write_as")),
            keys=names_of("keys", given.get("keys")),
            sql=given.get("sql"),
            tables=names_of("tables", given.get("tables")),
            schema_evolution=str(given.get("schema_evolution") or SchemaEvolution.FAIL),
            quarantine=quarantine,
        )


def write_requests(given: Mapping[str, Any]) -> tuple[WriteRequest, ...]:
    """One request for each of `targets`, in order; without them the one that the other arguments make.

    A target without a `stream` of its own reads the operator's. Raises InvalidArgument.
    """
    targets = given.get("targets")
    if targets is None:
        return (WriteRequest.parse(given),)
    require_targets(targets, given)
    return tuple(WriteRequest.parse({"stream": given.get("stream"), **target}) for target in targets)


def streams_of(requests: Sequence[WriteRequest]) -> tuple[str, ...]:
    """The streams that any of the requests reads, each once."""
    names = {name.casefold(): name for request in reversed(requests) for name in reversed(request.streams)}
    return tuple(reversed(names.values()))


def require_all_read(requests: Sequence[WriteRequest], streams: Sequence[str]) -> None:
    """Raises InvalidArgument for a stream that no request reads: its changes would be passed over.

    A statement reads the streams that it names, every other write all that it is given. One stream is read by all, as
    `parsed_sql` sees to it. Raises StatementRefused.
    """
    if len(streams) < 2:
        return
    read = {name.casefold() for request in requests for name in _read_by(request)}
    unread = [name for name in streams if name.casefold() not in read]
    if unread:
        problem = "nothing reads it, so its changes would be passed over; read it, or leave it out"
        raise InvalidArgument(argument="stream", value=unread[0] if len(unread) == 1 else unread, problem=problem)


def _read_by(request: WriteRequest) -> Sequence[str]:
    if request.write_as != WriteAs.SQL or not request.sql:
        return request.streams
    from tidemark.sql.statements import parse_write

    return parse_write(filling(request.sql)).names


def require_targets(targets: Any, given: Mapping[str, Any]) -> None:
    """Raises InvalidArgument for targets of another form, and for arguments beside them that each has for itself."""
    beside = [name for name in OF_TARGETS if given.get(name) and given.get(name) != SchemaEvolution.FAIL]
    if beside:
        problem = "every target has its own; leave it out"
        raise InvalidArgument(argument=beside[0], value=given[beside[0]], problem=problem)
    if not isinstance(targets, list | tuple) or not targets:
        problem = "give a list with the arguments of each target"
        raise InvalidArgument(argument="targets", value=targets, problem=problem)
    for target in targets:
        if not isinstance(target, Mapping):
            raise InvalidArgument(argument="targets", value=target, problem="give the arguments of a target by name")
        unknown = [str(name) for name in target if name not in (*OF_TARGETS, "stream")]
        if unknown:
            problem = f"a target has no argument {unknown[0]!r}; it may have stream, {', '.join(OF_TARGETS)}"
            raise InvalidArgument(argument="targets", value=dict(target), problem=problem)


def quarantine_of(value: Any) -> str | None:
    """The table's name; None where none is asked for, also as a template renders that."""
    names = names_of("quarantine", None if str(value).strip() in ("None", "") else value)
    return _only("quarantine", names) if names else None


def planned_writes(request: WriteRequest, table_uri: TableUri) -> tuple[PlannedWrite, ...]:
    """One write, followed by its quarantine if it has one, or one per target for a function.

    Raises InvalidArgument, StatementRefused, …NotFound.
    """
    evolution = evolution_of(request.schema_evolution)
    if ":" in request.write_as:
        return _by_function(request, evolution, table_uri)
    if request.tables:
        raise InvalidArgument(
            argument="tables", value=list(request.tables), problem="only a function needs its tables named"
        )
    if request.write_as in (WriteAs.APPEND, WriteAs.MERGE):
        return _by_columns(request, WriteAs(request.write_as), evolution, table_uri)
    if request.write_as == WriteAs.SQL:
        return (_by_sql(request, table_uri),)
    raise InvalidArgument(argument="write_as", value=request.write_as, problem=f"it must be {MODES}")


def _by_columns(
    request: WriteRequest, write_as: WriteAs, evolution: SchemaEvolution, table_uri: TableUri
) -> tuple[PlannedWrite, ...]:
    if request.sql:
        raise InvalidArgument(argument="sql", value=request.sql, problem=f"write_as={write_as.value!r} takes no SQL")
    if (write_as is WriteAs.MERGE) != bool(request.keys):
        problem = "a merge needs key columns" if write_as is WriteAs.MERGE else "only a merge takes keys"
        raise InvalidArgument(argument="keys", value=list(request.keys), problem=problem)
    target = _only("target", request.targets)
    write = PlannedWrite(
        write_as=write_as,
        target=target,
        source=_only("stream", request.streams),
        keys=request.keys,
        schema_evolution=evolution,
        tables={target: _target_uri(target, table_uri)},
        quarantine=request.quarantine,
    )
    return with_quarantine(write, "" if request.quarantine is None else _target_uri(request.quarantine, table_uri))


def parsed_sql(request: WriteRequest, streams: Sequence[str] | None) -> ParsedStatement:
    """The statement of the request. It reads one of the `streams`, if they are known. Raises InvalidArgument,
    StatementRefused.
    """
    from tidemark.sql.statements import parse_write

    if not request.sql or not isinstance(request.sql, str):
        raise InvalidArgument(argument="sql", value=request.sql, problem="write_as='sql' needs a statement")
    parsed = parse_write(request.sql)
    if streams and {name.casefold() for name in streams}.isdisjoint(name.casefold() for name in parsed.names):
        problem = f"it reads no stream: what {', '.join(streams)} brings would be passed over"
        raise StatementRefused(problem=problem, sql=request.sql)
    return parsed


def filling(sql: str) -> str:
    """The INSERT that fills the table of a CREATE TABLE … AS SELECT; other statements as they are. Raises
    SqlCompilationError for a form of it that cannot read a stream.
    """
    table = created_table_of(sql)
    return sql if table is None else insert_of(table)


def insert_of(table: CreatedTable) -> str:
    """The INSERT that fills the table."""
    from tidemark.sql.names import sql_name

    return f"{INTO.format(sql_name(table.name))}{table.query}"


def created_table_of(sql: object) -> CreatedTable | None:
    """The parts of a CREATE TABLE … AS SELECT; None for anything else. Raises as `filling`."""
    from tidemark.sql.statements import parse_statement
    from tidemark.sql.text import Cursor
    from tidemark.streams.planning.stream_sql.tables import created_table

    if not isinstance(sql, str):
        return None
    try:
        parse_statement(sql)
    except StatementRefused:
        try:
            Cursor(sql)
        except SqlCompilationError:  # no statement at all, as the plan says
            return None
        return created_table(sql)
    return None


def _by_sql(request: WriteRequest, table_uri: TableUri) -> PlannedWrite:
    parsed = parsed_sql(request, request.streams)
    assert parsed.target is not None  # parse_write refuses a statement without one
    assert request.sql is not None
    streams = {name.casefold() for name in request.streams}
    read = [name for name in parsed.names if name.casefold() not in streams and name != parsed.target.name]
    tables = {parsed.target.name: _target_uri(parsed.target.name, table_uri), **{n: table_uri(n) for n in read}}
    target = _only("target", request.targets or (parsed.target.name,))
    if parsed.target.name.casefold() in streams or tables[parsed.target.name] != _target_uri(target, table_uri):
        raise InvalidArgument(
            argument="target", value=target, problem=f"the statement writes another table, {parsed.target.name}"
        )
    return PlannedWrite(write_as=WriteAs.SQL, target=parsed.target.name, sql=request.sql, tables=tables)


def _by_function(request: WriteRequest, evolution: SchemaEvolution, table_uri: TableUri) -> tuple[PlannedWrite, ...]:
    module, _, function = request.write_as.partition(":")
    if not (function.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise InvalidArgument(argument="write_as", value=request.write_as, problem=f"it must be {MODES}")
    if not request.targets:
        raise InvalidArgument(argument="target", value=None, problem="name every table that the function writes")
    if request.keys or request.sql:
        raise InvalidArgument(
            argument="keys" if request.keys else "sql",
            value=request.keys or request.sql,
            problem="a function has its own; leave it out",
        )
    targets = {name: _target_uri(name, table_uri) for name in request.targets}
    tables = {**targets, **{name: table_uri(name) for name in request.tables}}
    return tuple(
        PlannedWrite(
            write_as=WriteAs.FUNCTION,
            target=target,
            source=request.streams[0] if len(request.streams) == 1 else None,
            schema_evolution=evolution,
            function=request.write_as,
            tables=tables,
        )
        for target in request.targets
    )


def _target_uri(name: str, table_uri: TableUri) -> str:
    try:
        return table_uri(name)
    except TableNotFound as error:
        raise TargetNotFound(target=name, hint=error.hint) from error


def _only(argument: str, names: Sequence[str]) -> str:
    if len(names) != 1:
        raise InvalidArgument(argument=argument, value=list(names), problem="exactly one name is needed here")
    return names[0]
