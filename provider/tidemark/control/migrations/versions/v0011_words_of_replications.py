"""Replications have the field's words: apply, needs_backfill, request, invalid_values."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

OBJECTS = "tidemark_replicated_object"
WRITES = sa.table("tidemark_object_write", sa.column("kind"), sa.column("report"))
MOVES = sa.table("tidemark_replication_move", sa.column("act"))
REPLICATIONS = sa.table("tidemark_replication", sa.column("uid"), sa.column("options"))


def upgrade() -> None:
    """Each word in the place of the old one; marks in the lake keep theirs, and are read."""
    op.alter_column(OBJECTS, "flagged", new_column_name="needs_backfill")
    _rewrite(kind=("write_down", "apply"), act=("ask", "request"), reason=("flagged", "needs_backfill"))
    _rename_option("unfit_values", "invalid_values")


def downgrade() -> None:
    """The old words again. A mark that was written since stays as it is, and the earlier release does not know it."""
    op.alter_column(OBJECTS, "needs_backfill", new_column_name="flagged")
    _rewrite(kind=("apply", "write_down"), act=("request", "ask"), reason=("needs_backfill", "flagged"))
    _rename_option("invalid_values", "unfit_values")


def _rewrite(*, kind: tuple[str, str], act: tuple[str, str], reason: tuple[str, str]) -> None:
    """A quote within a JSON text is escaped, so only the name of a field looks like `"name":`."""
    before, after = (f'"{name}":' for name in reason)
    report = sa.func.replace(WRITES.c.report, before, after)
    op.execute(WRITES.update().where(WRITES.c.kind == kind[0]).values(kind=kind[1], report=report))
    op.execute(MOVES.update().where(MOVES.c.act == act[0]).values(act=act[1]))


def _rename_option(before: str, after: str) -> None:
    """Also of dropped replications. The text stays canonical JSON, with sorted names."""
    connection, of = op.get_bind(), REPLICATIONS.c
    for uid, text in connection.execute(sa.select(of.uid, of.options)).all():
        options = {after if name == before else name: value for name, value in json.loads(text).items()}
        plain = json.dumps(options, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        connection.execute(REPLICATIONS.update().where(of.uid == uid).values(options=plain))
