"""The numbers that jobs got for each target. Empty windows reuse their rows, and history can be deleted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

LOOKED_UP_BY = (
    ("tidemark_transaction", "closed_at"),
    ("tidemark_stream", "held_by"),
    ("tidemark_chunk", "committed_at"),
    ("tidemark_object_write", "closed_at"),
)
ORDERED = """
    INSERT INTO tidemark_target_number (target_path, target_table_id, stream_uid, serial, version)
    SELECT t.target_path, t.target_table_id, w.stream_uid, MAX(s.txn_version), MAX(s.base_version)
    FROM tidemark_job_target t
    JOIN tidemark_job j ON j.id = t.job_id
    JOIN tidemark_statement s ON s.transaction_id = j.transaction_id AND s.number = t.number
    JOIN tidemark_window w ON w.transaction_id = j.transaction_id AND w.position = 0
    GROUP BY t.target_path, t.target_table_id, w.stream_uid
"""
NOT_YET_ORDERED = """
    UPDATE tidemark_stream SET known_serial = serial - 1 WHERE uid IN (
        SELECT h.uid FROM tidemark_stream h
        JOIN tidemark_transaction t ON t.id = h.held_by AND NOT t.submitted AND t.serial = h.serial
        JOIN tidemark_window w ON w.transaction_id = t.id AND w.position = 0 AND w.stream_uid = h.uid
    )
"""


def upgrade() -> None:
    """Adds tables and columns. The streams' numbers count as known, but not that of a window that no job got."""
    op.add_column("tidemark_store", sa.Column("pruned_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("tidemark_transaction", sa.Column("nothing_of", sa.String(36), nullable=True))
    op.create_index("ix_tidemark_transaction_nothing_of", "tidemark_transaction", ["nothing_of", "closed_at"])
    for table, column in LOOKED_UP_BY:
        op.create_index(f"ix_{table}_{column}", table, [column])
    op.drop_index("ix_tidemark_offset_move_stream_uid", "tidemark_offset_move")
    op.create_index("ix_tidemark_offset_move_stream_uid", "tidemark_offset_move", ["stream_uid", "id"])
    op.create_table(
        "tidemark_target_number",
        sa.Column("target_path", sa.Text(), nullable=False),
        sa.Column("target_table_id", sa.String(64), nullable=False),
        sa.Column("stream_uid", sa.String(36), nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("target_path", "target_table_id", "stream_uid", name="pk_tidemark_target_number"),
    )
    op.create_index("ix_tidemark_target_number_target_table_id", "tidemark_target_number", ["target_table_id"])
    op.execute(ORDERED)
    op.add_column("tidemark_stream", sa.Column("known_serial", sa.BigInteger(), nullable=True))
    op.execute("UPDATE tidemark_stream SET known_serial = serial")
    op.execute(NOT_YET_ORDERED)


def downgrade() -> None:
    """Drops tables and columns. The numbers for each target are lost."""
    op.drop_column("tidemark_stream", "known_serial")
    op.drop_table("tidemark_target_number")
    op.drop_index("ix_tidemark_offset_move_stream_uid", "tidemark_offset_move")
    op.create_index("ix_tidemark_offset_move_stream_uid", "tidemark_offset_move", ["stream_uid"])
    for table, column in LOOKED_UP_BY:
        op.drop_index(f"ix_{table}_{column}", table)
    op.drop_index("ix_tidemark_transaction_nothing_of", "tidemark_transaction")
    op.drop_column("tidemark_transaction", "nothing_of")
    op.drop_column("tidemark_store", "pruned_at")
