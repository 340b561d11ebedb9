"""Errors of channels, of their rows and of their tables."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "BodyTooLarge",
    "BodyUnreadable",
    "ChangeNotCommitted",
    "ChannelClosed",
    "ChannelError",
    "ChannelHasUncommittedRows",
    "ChannelInvalid",
    "ChannelNotFound",
    "ChannelTokenLost",
    "CommitConflict",
    "ContinuationTokenStale",
    "IngestBusy",
    "IngestForbidden",
    "IngestPaused",
    "IngestServiceRefused",
    "IngestUnauthenticated",
    "IngestUnavailable",
    "KernelFailed",
    "QuarantineMissing",
    "RowsNotCommitted",
    "RowsRefused",
    "SourceUnreadable",
    "TableNotSupported",
    "TablesNotKept",
    "TokenOutOfOrder",
    "TokensFileUnreadable",
]


class ChannelError(TidemarkError):
    """{message}"""


class TableNotSupported(ChannelError):
    """Table {table} cannot take rows of channels (code 6): {problem}. Alter the table, or give the rows a table of
    their own.
    """


class ChannelNotFound(ChannelError):
    """Table {table} has no channel {channel}. These exist: {known}. Name one of them, or open it, which creates it."""


class ChannelInvalid(ChannelError):
    """Channel {channel} of table {table} can write no more (code {code}): {problem} Rows that were not committed are
    discarded. Open the channel again and continue after its committed offset token, which is {offset_token!r}.
    """


class ChannelClosed(ChannelError):
    """Channel {channel} of table {table} is closed. Open it again to write."""


class ChannelHasUncommittedRows(ChannelError):
    """Channel {channel} of table {table} has {rows} rows that are not committed yet. Flush or close the writer that has
    them, or open the channel without fail_on_uncommitted_rows, which discards them.
    """


class ChannelTokenLost(ChannelError):
    """Channel {channel} of table {table} cannot be opened: {problem} Its offset token {offset_token!r} may be ahead of
    the rows. Set the token of the last row that the table has (`lake.set_channel_offset_token`), or drop the channel.
    """


class RowsRefused(ChannelError):
    """A row for table {table} does not fit: {row}, {problem} No row of the batch was taken, and the offset token did
    not move. Correct the row, or open the channel with another on_error.
    """


class SourceUnreadable(ChannelError):
    """The source {source} of a channel cannot be read: {problem} Rows that were committed stay, and the next run
    continues after them. If it fails again, correct the source or its connection.
    """


class QuarantineMissing(ChannelError):
    """Bad rows of channel {channel} wait for their quarantine table {table}, which does not exist. Restore it, or open
    the channel with `quarantine`, which recreates it.
    """


class RowsNotCommitted(ChannelError):
    """Rows of table {table} could not be committed: {problem} They stay in the buffer. The next flush tries
    again.
    """


class ChangeNotCommitted(ChannelError):
    """{change} in table {table} was not committed in time: {problem} {outcome} Try again."""


class TokenOutOfOrder(ChannelError):
    """Channel {channel} of table {table}: {problem} No row of the batch was taken. Send the batch that follows the last
    token, or open the channel without strict_tokens.
    """


class IngestUnavailable(ChannelError):
    """No channel can be opened here: {problem}. {remedy}"""


class CommitConflict(ChannelError):
    """A commit to {table} met another one: {problem}. Nothing was written by it, or it is unknown whether it was. Try
    again: channels continue after their committed offset tokens.
    """


class KernelFailed(ChannelError):
    """Delta Kernel failed for {table}: {problem}. Committed rows stay. Try again. If it fails once more, check the
    table and its storage, and the Java and the memory of this host.
    """


class BodyUnreadable(ChannelError):
    """The body of the request cannot be read: {problem}. Nothing of it was taken. Correct it, and send it again."""


class BodyTooLarge(ChannelError):
    """The body of the request has more than {limit} bytes, before or after decompression. Send less at a time."""


class IngestPaused(ChannelError):
    """Table {table} takes no rows of channels until {until}: it was paused for other writers. Send the rows again
    after that.
    """


class TablesNotKept(ChannelError):
    """{failed} of {total} tables with channels could not be kept; the others are done. Remove the causes, then run the
    task again. {problems}
    """


class IngestServiceRefused(ChannelError):
    """The ingest service {url} refused the request: {message}"""


class IngestBusy(ChannelError):
    """The buffers of table {table} are full. {problem} Nothing was taken. Send the rows again in {seconds} seconds."""


class TokensFileUnreadable(ChannelError):
    """The file of the ingest service's tokens, {path}, cannot be read: {problem}. Restore it, or remove it and add the
    tokens again.
    """


class IngestUnauthenticated(ChannelError):
    """The ingest service does not know the writer: {problem}. Create a token with
    `airflow tidemark ingest tokens add`, and send it in the header Authorization: Bearer TOKEN.
    """


class IngestForbidden(ChannelError):
    """The token of {writer} may not write table {table}. It may write: {tables}. Create a token for other tables with
    `airflow tidemark ingest tokens add --table`.
    """


class ContinuationTokenStale(ChannelError):
    """STALE_CONTINUATION_TOKEN_SEQUENCER: channel {channel} of table {table} expects another continuation token.
    {problem} No row was taken. Ask for the channel's status, or open it again, and continue after its committed offset
    token.
    """
