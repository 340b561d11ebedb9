"""The place of a change in its database's log, by the source block of an envelope and the kind of database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tidemark.replication.planning.debezium import Envelope
from tidemark.replication.planning.positions import lsn_text

__all__ = ["SourceFacts", "facts_of"]


class SourceFacts(NamedTuple):
    """`place`: what orders changes of the database, as texts; both halves of a moved key have the same. The others are
    the fields of Datastream's `source_metadata`, None where the database has no such thing.
    """

    place: tuple[str, ...] = ()
    tx_id: str | None = None
    database: str | None = None
    lsn: str | None = None
    log_file: str | None = None
    log_position: str | None = None
    scn: str | None = None
    rs_id: str | None = None
    ssn: str | None = None
    row_id: str | None = None


def facts_of(envelope: Envelope) -> SourceFacts:
    """The facts of a change."""
    return _OF[envelope.connector](envelope, envelope.source)


def _postgresql(_: Envelope, said: Mapping[str, Any]) -> SourceFacts:
    number = said.get("lsn")
    lsn = lsn_text(number) if isinstance(number, int) and 0 <= number < 1 << 64 else None
    place = () if lsn is None else (lsn,)
    return SourceFacts(place, _text(said.get("txId")), _text(said.get("db")), lsn=lsn)


def _mysql(envelope: Envelope, said: Mapping[str, Any]) -> SourceFacts:
    file, position = _text(said.get("file")), _text(said.get("pos"))
    place = () if file is None else (file, position or "0", _text(said.get("row")) or "0")
    transaction = _text(said.get("gtid")) or envelope.transaction
    return SourceFacts(place, transaction, _text(said.get("db")), log_file=file, log_position=position)


def _oracle(_: Envelope, said: Mapping[str, Any]) -> SourceFacts:
    scn, rs_id, ssn = _text(said.get("scn")), _text(said.get("rs_id")), _text(said.get("ssn"))
    place = () if scn is None else (scn, (rs_id or "").strip(), ssn or "0")
    return SourceFacts(
        place,
        _text(said.get("txId")),
        _text(said.get("db")),
        scn=scn,
        rs_id=None if rs_id is None else rs_id.strip(),
        ssn=ssn,
        row_id=_text(said.get("row_id")),
    )


def _sqlserver(_: Envelope, said: Mapping[str, Any]) -> SourceFacts:
    commit, change = _text(said.get("commit_lsn")), _text(said.get("change_lsn"))
    place = () if change is None else (commit or "", change, _text(said.get("event_serial_no")) or "0")
    return SourceFacts(place, commit, _text(said.get("db")), lsn=change)


def _text(value: Any) -> str | None:
    return None if value in (None, "") else str(value)


_OF = {
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mariadb": _mysql,
    "oracle": _oracle,
    "sqlserver": _sqlserver,
}
