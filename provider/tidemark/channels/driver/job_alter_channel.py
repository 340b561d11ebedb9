"""The ALTER_CHANNEL job: a channel is opened, gets another token, or is dropped."""

from __future__ import annotations

from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.job_client import client_of_job
from tidemark.channels.model.jobs import AlterChannel, AlteredChannel, ChannelAction
from tidemark.channels.planning.names import key_of
from tidemark.channels.planning.restores import records_now
from tidemark.jobs.context import JobContext
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.tables import resolve

__all__ = ["alter_channel"]


def alter_channel(job: JobContext, request: AlterChannel) -> AlteredChannel:
    """Change the channel. A second run of `set_token` and `drop` changes nothing; one of `open` fences once more.

    Raises TableNotFound, TableNotSupported, ChannelNotFound, ChannelTokenLost, CommitsMayBeLost, ChangeNotCommitted.
    """
    uri = resolve(request.table, request.lake_root, job.options)[0]
    key = key_of(request.channel)
    before = records_now(DeltaLog.open(uri, job.options)).get(key)
    with client_of_job(job, request.writer, request.lake_root, only_writer=request.only_writer) as client:
        _alter(client, request)
    after = records_now(DeltaLog.open(uri, job.options)).get(key)
    return AlteredChannel(
        existed=before is not None,
        token_before=None if before is None else before.offset_token,
        token=None if after is None else after.offset_token,
    )


def _alter(client: IngestClient, request: AlterChannel) -> None:
    match request.action:
        case ChannelAction.OPEN:
            client.open_channel(request.channel, request.table, offset_token=request.token)
        case ChannelAction.SET_TOKEN:
            client.set_offset_token(request.channel, request.table, request.token)
        case ChannelAction.DROP:
            client.drop_channel(request.channel, request.table)
