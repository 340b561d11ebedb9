"""One table of all objects, with their states: of streams, change streams, consumer groups and replications."""

from __future__ import annotations

import json
import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLE = "tidemark_object"
AT_ONCE = 1_000
TIME = sa.DateTime(timezone=True)
TASK = re.compile(r"(?P<dag>[^/#\s]+)/.+/(?P<task>[^/]+)/-?\d+(?:#\d+@\S*)?", re.DOTALL)

STREAMS = """
    SELECT s.uid, s.name, NULL AS within, c.who AS who,
      CASE WHEN h.failures_in_row > 0 THEN h.last_failed_run ELSE m.run END AS run,
      CASE WHEN h.failures_in_row > 0 THEN h.last_failed_run END AS met_in,
      CASE WHEN h.failures_in_row > 0 THEN 'failing' WHEN s.initial_rows_pending THEN 'behind'
        WHEN COALESCE(h.consumptions, 0) = 0 THEN 'undelivered' ELSE 'delivering' END AS state,
      CASE WHEN h.failures_in_row > 0 THEN 'failed'
        WHEN s.initial_rows_pending OR COALESCE(h.consumptions, 0) = 0 THEN 'waiting' ELSE 'ok' END AS severity,
      CASE WHEN h.failures_in_row > 0 THEN h.failing_since ELSE s.created_at END AS since,
      CASE WHEN h.failures_in_row = 0 THEN NULL WHEN COALESCE(h.last_error, '') = '' THEN h.last_error_type
        ELSE h.last_error_type || ': ' || h.last_error END AS problem
    FROM tidemark_stream s
    LEFT JOIN tidemark_stream_health h ON h.stream_uid = s.uid
    LEFT JOIN tidemark_offset_move c ON c.id = (SELECT MIN(f.id) FROM tidemark_offset_move f WHERE f.stream_uid = s.uid)
    LEFT JOIN tidemark_offset_move m ON m.id = (SELECT MAX(l.id) FROM tidemark_offset_move l WHERE l.stream_uid = s.uid
      AND l.run IS NOT NULL)
    WHERE s.dropped_at IS NULL
"""
CHANGE_STREAMS = """
    SELECT c.uid, c.name, NULL AS within, NULL AS run, NULL AS who, NULL AS met_in,
      CASE WHEN c.everything OR w.stream_uid IS NOT NULL THEN 'watching' ELSE 'suspended' END AS state,
      CASE WHEN c.everything OR w.stream_uid IS NOT NULL THEN 'ok' ELSE 'waiting' END AS severity,
      c.created_at AS since, NULL AS problem
    FROM tidemark_change_stream c
    LEFT JOIN (SELECT DISTINCT stream_uid FROM tidemark_watched_table) w ON w.stream_uid = c.uid
    WHERE c.dropped_at IS NULL
"""
CONSUMER_GROUPS = """
    SELECT g.uid, g.name, c.name AS within, k.run AS run, NULL AS who, p.failed_run AS met_in,
      CASE WHEN p.token IS NOT NULL THEN 'failing' WHEN g.paused THEN 'paused' ELSE 'running' END AS state,
      CASE WHEN p.token IS NOT NULL THEN 'failed' WHEN g.paused THEN 'waiting' ELSE 'ok' END AS severity,
      g.created_at AS since,
      CASE WHEN p.token IS NOT NULL THEN (CASE WHEN f.failed > 1 THEN f.failed || ' partitions' ELSE 'a partition' END)
        || ' failed, ' || p.token || ': ' || COALESCE(p.error, 'no error is known') END AS problem
    FROM tidemark_consumer_group g
    JOIN tidemark_change_stream c ON c.uid = g.stream_uid
    LEFT JOIN (SELECT group_uid, MIN(token) AS token, COUNT(*) AS failed FROM tidemark_group_partition
      WHERE failed_run IS NOT NULL GROUP BY group_uid) f ON f.group_uid = g.uid
    LEFT JOIN tidemark_group_partition p ON p.group_uid = f.group_uid AND p.token = f.token
    LEFT JOIN (SELECT group_uid, MAX(run) AS run FROM tidemark_chunk GROUP BY group_uid) k ON k.group_uid = g.uid
    WHERE g.dropped_at IS NULL
"""
REPLICATIONS = """
    SELECT r.uid, r.name, NULL AS within, m.run AS run, m.who AS who, NULL AS met_in, r.state,
      CASE WHEN r.state IN ('failed', 'failed_permanently') THEN 'failed' WHEN r.error IS NOT NULL THEN 'warning'
        WHEN r.state = 'running' THEN 'ok' ELSE 'waiting' END AS severity,
      COALESCE((SELECT MAX(c.moved_at) FROM tidemark_replication_move c WHERE c.replication_uid = r.uid
        AND c.object_uid IS NULL AND c.from_state <> c.to_state), r.created_at) AS since,
      r.error AS problem
    FROM tidemark_replication r
    LEFT JOIN tidemark_replication_move m ON m.id = (SELECT MAX(l.id) FROM tidemark_replication_move l
      WHERE l.replication_uid = r.uid AND l.object_uid IS NULL AND l.run IS NOT NULL)
    WHERE r.dropped_at IS NULL
"""
REPLICATED_TABLES = """
    SELECT o.uid, o.schema_name || '.' || o.table_name AS name, r.name AS within, m.run AS run, m.who AS who,
      w.run AS met_in, o.state, o.selected, o.problem AS met, o.needs_backfill, o.notices,
      COALESCE(m.moved_at, r.created_at) AS since
    FROM tidemark_replicated_object o
    JOIN tidemark_replication r ON r.uid = o.replication_uid
    LEFT JOIN (SELECT object_uid, MAX(id) AS id FROM tidemark_replication_move WHERE from_state <> to_state
      GROUP BY object_uid) l ON l.object_uid = o.uid
    LEFT JOIN tidemark_replication_move m ON m.id = l.id
    LEFT JOIN tidemark_object_write w ON w.object_uid = o.uid AND w.state = 'open'
    WHERE r.dropped_at IS NULL
"""


def upgrade() -> None:
    """Every live object gets its row. The time since which a state holds is known only within the kept history."""
    made = op.create_table(
        TABLE,
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded_name", sa.Text(), nullable=False),
        sa.Column("within", sa.Text(), nullable=True),
        sa.Column("owner_dag", sa.Text(), nullable=True),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("problem_dags", sa.Text(), nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("kind", "uid", name="pk_tidemark_object"),
    )
    op.create_index("ix_tidemark_object_folded_name", TABLE, ["kind", "folded_name"])
    of_kind = {
        "stream": STREAMS,
        "change_stream": CHANGE_STREAMS,
        "consumer_group": CONSUMER_GROUPS,
        "replication": REPLICATIONS,
        "replicated_table": REPLICATED_TABLES,
    }
    for kind, query in of_kind.items():
        result = op.get_bind().execute(sa.text(query).columns(since=TIME)).mappings()
        found: list[dict[str, Any]] = [{str(name): value for name, value in one.items()} for one in result]
        rows = [_row(kind, _with_urgency(one) if kind == "replicated_table" else one) for one in found]
        for start in range(0, len(rows), AT_ONCE):
            op.bulk_insert(made, rows[start : start + AT_ONCE])


def downgrade() -> None:
    """The subjects' own rows say the same, but for owners and for how long a state holds."""
    op.drop_table(TABLE)


def _row(kind: str, found: dict[str, Any]) -> dict[str, Any]:
    name: str = found["name"] if found["within"] is None else f"{found['within']}/{found['name']}"
    owner = _dag(found["run"]) or _dag(found["who"])
    dags = sorted({dag for dag in (owner, _dag(found["met_in"])) if dag is not None})
    hidden = found["problem"] is None or not dags or (found["met_in"] is not None and _dag(found["met_in"]) is None)
    return {
        "kind": kind,
        "uid": found["uid"],
        "name": name,
        "folded_name": name.casefold(),
        "within": found["within"],
        "owner_dag": owner,
        "state": found["state"],
        "severity": found["severity"],
        "since": found["since"],
        "problem": found["problem"],
        "problem_dags": None if hidden else json.dumps(dags),
        "ended_at": None,
    }


def _with_urgency(found: dict[str, Any]) -> dict[str, Any]:
    """Of a replicated table, by its state, its problem, its flag and its notices."""
    met, flagged, state = found["met"], found["needs_backfill"], found["state"]
    notices = json.loads(found["notices"]) if found["notices"] else []
    left = not found["selected"]
    cases = (
        (left, "ok", None),
        (state == "unsupported", "warning", met),
        (state == "failed" or met not in (None, flagged), "failed", met or flagged),
        (state in ("pending", "active"), "waiting", None),
        (flagged is not None, "warning", f"it is to be backfilled: {flagged}"),
        (bool(notices), "warning", "; ".join(notices)),
        (state == "completed", "ok", None),
    )
    severity, problem = next(((how, said) for holds, how, said in cases if holds), ("waiting", None))
    return {**found, "state": "left" if left else state, "severity": severity, "problem": problem}


def _dag(run: str | None) -> str | None:
    """The DAG in the key of a run; None for people and notebooks."""
    found = TASK.fullmatch(run) if run is not None else None
    if found is None or (found["dag"] == "client" and found["task"] in ("transaction", "finish")):
        return None
    return found["dag"]
