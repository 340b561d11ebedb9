"""The description by which Airflow discovers the provider. Imports nothing: provider discovery runs on every Airflow
command.
"""

from __future__ import annotations

__all__ = ["get_provider_info"]

_INTEGRATION = "Tidemark"

_OPERATORS = (
    "tidemark.operators.streams",
    "tidemark.operators.keyed_streams",
    "tidemark.operators.view_streams",
    "tidemark.operators.external_tables",
    "tidemark.operators.consume",
    "tidemark.operators.replay",
    "tidemark.operators.rebase",
    "tidemark.operators.transaction",
    "tidemark.operators.stream_sql",
    "tidemark.operators.vacuum",
    "tidemark.operators.change_streams",
    "tidemark.operators.capture",
    "tidemark.operators.consumer_groups",
    "tidemark.operators.backfill",
    "tidemark.operators.partitions",
    "tidemark.operators.expire_change_log",
    "tidemark.operators.replications",
    "tidemark.operators.replication_capture",
    "tidemark.operators.replication_continuous",
    "tidemark.operators.replication_files",
    "tidemark.operators.replication_objects",
    "tidemark.operators.replication_lifecycle",
    "tidemark.operators.replication_retention",
    "tidemark.operators.ingest",
    "tidemark.operators.keep_channels",
    "tidemark.operators.alter_channel",
    "tidemark.operators.copy_into",
    "tidemark.operators.cached_query",
    "tidemark.operators.pipes",
    "tidemark.operators.alter_pipe",
    "tidemark.operators.views",
    "tidemark.operators.refresh_views",
    "tidemark.operators.auto_cluster",
    "tidemark.operators.search",
)
_SENSORS = (
    "tidemark.sensors.channels",
    "tidemark.sensors.streams",
    "tidemark.sensors.stale",
    "tidemark.sensors.consumer_groups",
    "tidemark.sensors.replication",
    "tidemark.sensors.pipes",
    "tidemark.sensors.views",
)


def get_provider_info() -> dict[str, object]:
    """The provider's metadata, valid against Airflow's `provider_info.schema.json`."""
    return {
        "package-name": "airflow-provider-tidemark",
        "name": "Tidemark",
        "description": "Change streams on Delta tables, consumed exactly once by Airflow on Spark.",
        "integrations": [{"integration-name": _INTEGRATION, "tags": ["software"]}],
        "operators": _modules(*_OPERATORS),
        "sensors": _modules(*_SENSORS),
        "triggers": _modules(
            "tidemark.triggers.streams",
            "tidemark.triggers.stale",
            "tidemark.triggers.watchers",
            "tidemark.triggers.pipes",
            "tidemark.triggers.views",
            "tidemark.triggers.notifications",
            "tidemark.triggers.yarn",
        ),
        "hooks": _modules("tidemark.hooks.tidemark"),
        "connection-types": [_CONNECTION_TYPE],
        "notifications": [
            "tidemark.notifications.stale_stream.StaleStreamNotifier",
            "tidemark.notifications.idle_channel.ChannelIdleNotifier",
            "tidemark.notifications.troubled_pipe.PipeTroubleNotifier",
            "tidemark.notifications.needing_objects.NeedingObjectsNotifier",
        ],
        "extra-links": [
            "tidemark.links.streams.WindowLink",
            "tidemark.links.streams.SparkUiLink",
            "tidemark.links.yarn.YarnLink",
        ],
        "asset-uris": [{"schemes": ["x-tidemark"], "handler": None}],
        "cli": ["tidemark.cli.get_tidemark_cli_commands"],
        "config": {"tidemark": {"description": "Defaults of the Tidemark provider.", "options": _OPTIONS}},
    }


def _modules(*modules: str) -> list[dict[str, object]]:
    return [{"integration-name": _INTEGRATION, "python-modules": list(modules)}]


def _text(label: str, description: str, *formats: str) -> dict[str, object]:
    schema: dict[str, object] = {"type": ["string", "null"]}
    if formats:
        schema["format"] = formats[0]
    return {"label": label, "description": description, "schema": schema}


_CONNECTION_TYPE: dict[str, object] = {
    "connection-type": "tidemark",
    "hook-class-name": "tidemark.hooks.tidemark.TidemarkHook",
    "hook-name": "Tidemark",
    "ui-field-behaviour": {
        "hidden-fields": ["host", "schema", "login", "port"],
        "relabeling": {"password": "Control store password"},
        "placeholders": {},
    },
    "conn-fields": {
        "control_store": _text(
            "Control store",
            "SQLAlchemy URL without its password. Empty: SQLite in tidemark.db under AIRFLOW_HOME.",
        ),
        "lake_root": _text(
            "Lake root", "Path or URI below which schema.table names are looked up. Empty: lake under AIRFLOW_HOME."
        ),
        "spark_conn_id": _text("Spark connection", "Id of the Spark connection that runs jobs. Empty: local[*]."),
        "spark_mode": _text(
            "Spark mode",
            "warm: a Spark of this host that stays up. submit: a JVM for each job. connect: the server of a Spark "
            "Connect connection. Empty: what fits the Spark connection.",
        ),
        "spark_slots": _text(
            "Warm jobs",
            "How many jobs the warm Spark of a host runs at a time. Empty: its cores, 2 to 8, for 512 MB each.",
        ),
        "spark_idle_minutes": _text(
            "Warm minutes", "How long the warm Spark of a host stays up without a job. Empty: 10."
        ),
        "spark_start_seconds": _text(
            "Warm start", "In how many seconds the warm Spark of a host must have started, 1 to 3600. Empty: 180."
        ),
        "max_executors": _text(
            "Most executors",
            "On a cluster, jobs get executors by the bytes that they read, up to this number. Empty: as the Spark "
            "settings say. Those also count if they name a number.",
        ),
        "min_executors": _text("Least executors", "Executors of small jobs, beside Most executors. Empty: 1."),
        "bytes_per_executor": _text(
            "Bytes per executor", "A whole number, beside Most executors. Empty: 4294967296, which is 4 GiB."
        ),
        "spark_ui_url": _text(
            "Spark UI",
            "Address of a page of Spark's that tasks link to: a master's or a history server's. May be empty.",
        ),
        "spark_conf": _text(
            "Spark settings",
            "JSON object of Spark settings for every job. Process lists show all but those with a secret's name.",
            "multiline",
        ),
        "spark_packages": _text(
            "Spark packages", "Maven coordinates that hold Delta Lake. A single '-': Spark has it already."
        ),
        "driver_environment": _text(
            "Driver environment",
            "Names of the worker's environment variables that drivers get beside the usual ones: SHOP_URL, TEAM_*.",
        ),
        "storage_options": _text(
            "Storage options", "JSON object for fsspec (keys, endpoint); kept out of job files and logs.", "password"
        ),
        "job_deadline_hours": _text(
            "Job hours", "How many hours after its order a Spark job stops itself, 1 to 23. Empty: 6."
        ),
        "full_listing_seconds": _text(
            "Full listing",
            "Seconds after which a pipe lists all names of its bucket again, and not only later ones. Empty: 3600.",
        ),
        "keep_history": _text(
            "Keep history",
            "How long the control store keeps the history of runs, as 90d; tasks drop what is older. Empty: for ever.",
        ),
    },
}

_OPTIONS: dict[str, object] = {
    "lake_root": {
        "description": "Lake root, if the connection names none. Empty: lake under AIRFLOW_HOME.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "/data/lake",
        "default": "",
    },
    "control_store": {
        "description": "SQLAlchemy URL of the control store when the connection does not say. "
        "Empty: SQLite in tidemark.db under AIRFLOW_HOME.",
        "version_added": "0.1.0",
        "type": "string",
        "sensitive": True,
        "example": "postgresql+psycopg://tidemark@db/tidemark",
        "default": "",
    },
    "monitor_conn_ids": {
        "description": "Tidemark connections whose streams the page in Airflow shows, separated by commas; the first "
        "is shown first. Empty: tidemark_default.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "tidemark_default,tidemark_finance",
        "default": "",
    },
    "acting_roles": {
        "description": "Roles of Airflow, separated by commas, whose holders may act on any object. They need no right "
        "to edit the DAG that owns it. Empty: none.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "Op,DataSupport",
        "default": "",
    },
    "metrics_objects": {
        "description": "How many objects of a kind have metrics of their own, the first by name; all others share the "
        "tag other. 0: none has.",
        "version_added": "0.1.0",
        "type": "integer",
        "example": "200",
        "default": "1000",
    },
    "look_minutes": {
        "description": "Minutes in which each object should have a look at its logs, 1 to 525600. A gauge counts those "
        "that had none.",
        "version_added": "0.1.0",
        "type": "integer",
        "example": "120",
        "default": "60",
    },
    "driver_environment": {
        "description": "Names of the worker's environment variables that drivers get beside the usual ones, if the "
        "connection does not say. Those of Airflow never pass.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "SHOP_URL, TEAM_*",
        "default": "",
    },
    "jobs_root": {
        "description": "Directory on the worker for the files of jobs, of its user alone. "
        "Empty: tidemark-jobs-<user id> under AIRFLOW_HOME.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "/var/lib/tidemark/jobs",
        "default": "",
    },
    "spark_mode": {
        "description": "How jobs run if the connection does not say: warm, submit or connect. "
        "Empty: what fits the Spark connection.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "submit",
        "default": "",
    },
    "spark_master": {
        "description": "Spark master when no Spark connection is named.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "local[2]",
        "default": "local[*]",
    },
}
