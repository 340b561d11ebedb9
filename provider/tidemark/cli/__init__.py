"""`airflow tidemark …`: streams, replications and the control store on the command line."""

from __future__ import annotations

from airflow.cli.cli_config import CLICommand, GroupCommand

from tidemark.cli.clean import clean_command
from tidemark.cli.replications import replication_commands
from tidemark.cli.store import store_commands
from tidemark.cli.streams import stream_commands

__all__ = ["get_tidemark_cli_commands"]


def get_tidemark_cli_commands() -> list[CLICommand]:
    """The commands that the provider adds to `airflow`."""
    groups = (
        GroupCommand(
            name="streams",
            help="List, show, move, free, export and import streams",
            subcommands=stream_commands(),
        ),
        GroupCommand(name="replications", help="List and show replications", subcommands=replication_commands()),
        GroupCommand(name="db", help="Migrate and check the control store", subcommands=store_commands()),
    )
    subcommands = (*groups, clean_command())
    return [GroupCommand(name="tidemark", help="Change data capture on Delta tables", subcommands=subcommands)]
