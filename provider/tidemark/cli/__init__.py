"""`airflow tidemark …`: streams, change streams, replications and the control store on the command line."""

from __future__ import annotations

from airflow.cli.cli_config import CLICommand, GroupCommand

from tidemark.cli.acceleration import acceleration_commands
from tidemark.cli.change_streams import change_stream_commands
from tidemark.cli.clean import clean_command
from tidemark.cli.clustering import clustering_commands
from tidemark.cli.consumer_groups import consumer_group_commands
from tidemark.cli.ingest import ingest_commands
from tidemark.cli.metrics import metric_commands
from tidemark.cli.objects import object_commands
from tidemark.cli.overview import overview_command
from tidemark.cli.pipes import pipe_commands
from tidemark.cli.replications import replication_commands
from tidemark.cli.results import result_commands
from tidemark.cli.search import search_commands
from tidemark.cli.spark import spark_commands
from tidemark.cli.store import store_commands
from tidemark.cli.streams import stream_commands
from tidemark.cli.views import view_commands

__all__ = ["get_tidemark_cli_commands"]


def get_tidemark_cli_commands() -> list[CLICommand]:
    """The commands that the provider adds to `airflow`."""
    groups = (*_of_changes(), *_of_queries_and_services())
    subcommands = (overview_command(), *groups, clean_command())
    return [GroupCommand(name="tidemark", help="Change data capture on Delta tables", subcommands=subcommands)]


def _of_changes() -> tuple[GroupCommand, ...]:
    return (
        GroupCommand(
            name="objects",
            help="List the objects of every kind, show one, its history, its lineage, and the acts on objects",
            subcommands=object_commands(),
        ),
        GroupCommand(
            name="streams",
            help="List, show, create, move, free, drop, export and import streams",
            subcommands=stream_commands(),
        ),
        GroupCommand(
            name="replications",
            help="List, show, pause, resume, recover, backfill and drop replications",
            subcommands=replication_commands(),
        ),
        GroupCommand(
            name="change-streams",
            help="List, show, suspend, resume, backfill and drop change streams",
            subcommands=change_stream_commands(),
        ),
        GroupCommand(
            name="consumer-groups",
            help="List, show, pause, resume, reset and drop the consumer groups of a change stream",
            subcommands=consumer_group_commands(),
        ),
    )


def _of_queries_and_services() -> tuple[GroupCommand, ...]:
    return (
        GroupCommand(name="pipes", help="List, show, pause, resume and drop pipes", subcommands=pipe_commands()),
        GroupCommand(
            name="results", help="List and clear the answers that queries may reuse", subcommands=result_commands()
        ),
        GroupCommand(
            name="search",
            help="List tables with search paths, and what their upkeep costs",
            subcommands=search_commands(),
        ),
        GroupCommand(
            name="acceleration",
            help="Estimate query acceleration, and list accelerated runs",
            subcommands=acceleration_commands(),
        ),
        GroupCommand(
            name="views",
            help="List, describe, refresh, suspend, resume and drop kept queries",
            subcommands=view_commands(),
        ),
        GroupCommand(
            name="clustering",
            help="List, describe, suspend and resume tables that are kept clustered",
            subcommands=clustering_commands(),
        ),
        GroupCommand(
            name="spark", help="Start, list and end the warm Spark of this host", subcommands=spark_commands()
        ),
        GroupCommand(
            name="ingest", help="Run the ingest service, and manage its writers' tokens", subcommands=ingest_commands()
        ),
        GroupCommand(
            name="metrics", help="Send gauges of all objects, and list all metrics", subcommands=metric_commands()
        ),
        GroupCommand(name="db", help="Migrate, check and prune the control store", subcommands=store_commands()),
    )
