"""Commits by Delta Kernel, in the JVM of a Spark driver or in a small one of our own. No Spark job runs.

Kernel appends files and sets domain metadata in one commit. Two commits that set the same domain conflict; commits with
different domains pass each other. A commit fails if another one changed the table's metadata, as RESTORE and
CREATE OR REPLACE TABLE do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tidemark.channels.driver.commit_locks import commit_lock
from tidemark.channels.driver.kernel_tails import snapshot_of_tail
from tidemark.channels.model.channels import COMMITTER
from tidemark.channels.planning.storages import LOG_STORES, log_store_setting, log_store_settings
from tidemark.errors import CommitConflict, KernelFailed, TableNotFound
from tidemark.lake.log_tails import LogTail
from tidemark.model.table_log import Metadata, Protocol

__all__ = ["Committed", "DataFile", "KernelEngine", "KernelSnapshot", "KernelTable"]

_RETRIES = 200
_PLAIN = "/!$&'()*+,;=:@~"
_CONFLICTS = frozenset(
    {
        *("ConcurrentWriteException", "MetadataChangedException", "ProtocolChangedException"),
        *("ConcurrentTransactionException", "DomainDoesNotExistException"),
        *("MaxCommitRetryLimitReachedException", "CommitStateUnknownException"),
        "TableAlreadyExistsException",
    }
)
_CHECKPOINT = "CHECKPOINT"
_TRACKED = {"delta.enableRowTracking": "true"}
_DEFERRED = (_CHECKPOINT, "CHECKSUM_SIMPLE")


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that is written and not committed. `path`: below the table, not encoded. `modified`: milliseconds
    since 1970. `stats`: Delta's statistics as JSON, by names in files. `partition`: the value of each partition column
    in Delta's form, by the column's name in files.
    """

    path: str
    size: int
    modified: int
    stats: str
    partition: Mapping[str, str | None]


class KernelEngine:
    """The JVM's objects for all tables. `jvm`: py4j's view of it. `configuration`: Hadoop's, for file systems."""

    def __init__(self, jvm: Any, configuration: Any) -> None:
        self.jvm, self._configuration = jvm, configuration
        self.kernel = jvm.io.delta.kernel
        with _in_words("(engine)"):
            self.engine = self.kernel.defaults.engine.DefaultEngine.create(configuration)

    @classmethod
    def of_session(cls, spark: Any) -> KernelEngine:
        """The engine in the driver of a session that is not behind Connect."""
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        known = {name: spark.conf.get(name, None) for name in LOG_STORES}  # all settings would take many calls
        for name, value in log_store_settings({name: value for name, value in known.items() if value}).items():
            configuration.set(name, value)
        return cls(spark._jvm, configuration)

    def is_alive(self) -> bool:
        """Whether the JVM answers."""
        try:
            with _in_words("(engine)"):
                self.jvm.java.lang.System.currentTimeMillis()
        except KernelFailed:
            return False
        return True

    def log_store(self, uri: str) -> str | None:
        """The class that writes commits of tables at such a URI, if the configuration names one."""
        found = self._configuration.get(log_store_setting(uri.partition("://")[0]))
        return None if found is None else str(found)

    def table(self, uri: str) -> KernelTable:
        """The table at a canonical URI. Nothing is read yet."""
        return KernelTable(self, uri)


class KernelSnapshot:
    """A table at one version. Properties are read when they are asked for."""

    def __init__(self, uri: str, snapshot: Any, engine: Any) -> None:
        self._uri, self.java, self._engine = uri, snapshot, engine
        self.version = int(snapshot.getVersion())

    def domain(self, name: str) -> str | None:
        """The value of a domain; None if the table has none of that name."""
        with _in_words(self._uri):
            found = self.java.getDomainMetadata(name)
            return str(found.get()) if found.isPresent() else None

    def domains(self) -> dict[str, str]:
        """Domain → value, of all."""
        with _in_words(self._uri):
            found = self.java.getActiveDomainMetadataMap().values()
            return {one.getDomain(): one.getConfiguration() for one in found}

    def transaction_version(self, application: str) -> int:
        """The latest version of an application's transactions; -1 without any."""
        with _in_words(self._uri):
            found = self.java.getLatestTransactionVersion(self._engine, application)
            return int(found.get()) if found.isPresent() else -1

    def metadata(self) -> Metadata:
        """The table's metadata."""
        with _in_words(self._uri):
            said = self.java.getMetadata()
            return Metadata(
                table_id=said.getId(),
                schema_json=said.getSchemaString(),
                partition_columns=tuple(self.java.getPartitionColumnNames()),
                configuration=dict(said.getConfiguration()),
                provider=said.getFormat().getProvider(),
            )

    def protocol(self) -> Protocol:
        """The table's protocol."""
        with _in_words(self._uri):
            said = self.java.getProtocol()
            return Protocol(
                said.getMinReaderVersion(),
                said.getMinWriterVersion(),
                tuple(said.getReaderFeatures()),
                tuple(said.getWriterFeatures()),
            )


@dataclass(frozen=True)
class Committed:
    """A commit. `after`: the table at its version. None if other commits came between: the table must be read again.

    `later`: work that keeps the log short, checkpoints above all; it may run in another thread, at any time.
    """

    version: int
    after: KernelSnapshot | None
    later: Sequence[Any]


@dataclass(frozen=True)
class _Checkpoint:
    """The checkpoint of a known snapshot. Kernel's own work would list the log to find that snapshot again."""

    snapshot: Any

    def threadSafeInvoke(self, engine: Any) -> None:
        self.snapshot.writeCheckpoint(engine)

    def getType(self) -> str:
        return _CHECKPOINT


class KernelTable:
    """One table. Methods may be called from several threads."""

    def __init__(self, engine: KernelEngine, uri: str) -> None:
        self.uri = uri
        self._engine = engine
        with _in_words(uri):
            self._table = engine.kernel.Table.forPath(engine.engine, uri)

    def latest(self, tail: LogTail | None = None) -> KernelSnapshot:
        """The table now, or at the head of a tail of its log that was just read. Raises TableNotFound."""
        engine = self._engine.engine
        with _in_words(self.uri):
            if tail is None:
                return KernelSnapshot(self.uri, self._table.getLatestSnapshot(engine), engine)
            found = snapshot_of_tail(self._engine.jvm, engine, self._table.getPath(engine), tail)
            return KernelSnapshot(self.uri, found, engine)

    def latest_or_new(self, schema_json: str, *, partition_columns: Sequence[str] = ()) -> KernelSnapshot:
        """The table now. If there is none, it is made with a schema in Delta's form, and with row tracking.

        A second run, and a race, change nothing. Raises KernelFailed, also for a directory with files of no table.
        """
        try:
            return self.latest()
        except TableNotFound:
            self._create(schema_json, partition_columns)
            return self.latest()

    def _create(self, schema_json: str, partition_columns: Sequence[str]) -> None:
        kernel, engine = self._engine.kernel, self._engine.engine
        with suppress(CommitConflict), _in_words(self.uri):
            schema = self._schema(schema_json)
            builder = self._table.createTransactionBuilder(engine, COMMITTER, kernel.Operation.CREATE_TABLE)
            builder = builder.withSchema(engine, schema).withTableProperties(engine, dict(_TRACKED))
            transaction = builder.withPartitionColumns(engine, list(partition_columns)).build(engine)
            transaction.commit(engine, kernel.utils.CloseableIterable.emptyIterable())

    def commit(
        self,
        on: KernelSnapshot,
        files: Sequence[DataFile],
        domains: Mapping[str, str | None],
        *,
        transaction: tuple[str, int] | None = None,
    ) -> Committed:
        """Append `files` and set `domains` (None removes one) in one commit, based on a snapshot.

        `transaction`: Delta's application id and version. CommitConflict, too, if the table has that version already.

        Raises CommitConflict if another commit since then set one of the domains or changed the table's metadata. It is
        also raised if nobody knows whether the commit happened. Read the table again, and decide.
        """
        engine = self._engine.engine
        with _in_words(self.uri):
            builder = on.java.buildUpdateTableTransaction(COMMITTER, self._engine.kernel.Operation.STREAMING_UPDATE)
            builder = builder.withMaxRetries(_RETRIES)
            if transaction is not None:
                builder = builder.withTransactionId(*transaction)
            started = builder.build(engine)
            actions = self._rows([_add(file) for file in files])
            for name, value in domains.items():
                if value is None:
                    started.removeDomainMetadata(name)
                else:
                    started.addDomainMetadata(name, value)
            rows = self._engine.kernel.utils.CloseableIterable.inMemoryIterable(actions)
            with self._alone():
                done = started.commit(engine, rows)
            after = done.getPostCommitSnapshot()
            return Committed(
                version=int(done.getVersion()),
                after=KernelSnapshot(self.uri, after.get(), engine) if after.isPresent() else None,
                later=[_without_listing(hook, after) for hook in _deferred(done)],
            )

    def set_schema(self, on: KernelSnapshot, schema_json: str) -> None:
        """Give the table another schema, in Delta's form, with columns added or NOT NULL gone.

        Kernel does so for tables with column mapping alone; for others the commit has the metadata as an action. Raises
        as `commit`. The table must be read again afterwards.
        """
        kernel, engine = self._engine.kernel, self._engine.engine
        metadata = on.metadata()
        with _in_words(self.uri):
            builder = on.java.buildUpdateTableTransaction(COMMITTER, kernel.Operation.MANUAL_UPDATE)
            rows = kernel.utils.CloseableIterable.emptyIterable()
            if metadata.configuration.get("delta.columnMapping.mode", "none") == "none":
                action = _metadata(on, metadata, schema_json)
                rows = kernel.utils.CloseableIterable.inMemoryIterable(self._rows([action]))
            else:
                builder = builder.withUpdatedSchema(self._schema(schema_json))
            with self._alone():
                builder.build(engine).commit(engine, rows)

    def do_later(self, work: Sequence[Any]) -> bool:
        """Write the checkpoint or the checksum that a commit left for later. Whether there was a checkpoint.

        Raises KernelFailed.
        """
        with _in_words(self.uri):
            for hook in work:
                hook.threadSafeInvoke(self._engine.engine)
            return any(str(hook.getType()) == _CHECKPOINT for hook in work)

    def shorten_log(self, tail: LogTail | None = None) -> None:
        """Write a checkpoint of the table now, and remove commits that its log retention lets go.

        Checkpoints after commits remove nothing. Nothing happens if the head of the tail has a checkpoint.

        Raises KernelFailed.
        """
        if tail is not None and tail.files.checkpoints[-1].version == tail.files.head:
            return
        snapshot = self.latest(tail)
        with _in_words(self.uri):
            snapshot.java.writeCheckpoint(self._engine.engine)

    def _alone(self) -> AbstractContextManager[None]:
        return commit_lock(self._engine.jvm, self.uri)

    def _schema(self, schema_json: str) -> Any:
        types = self._engine.kernel.internal.types
        return types.DataTypeJsonSerDe.deserializeStructType(schema_json)

    def _rows(self, actions: Sequence[str]) -> Any:
        """An iterator over actions in JSON. Kernel's own way would round decimals in the statistics."""
        kernel, java, handler = self._engine.kernel, self._engine.jvm.java.util, self._engine.engine.getJsonHandler()
        rows = java.ArrayList()
        for action in actions:
            text = kernel.internal.util.InternalUtils.singletonStringColumnVector(action)
            batch = handler.parseJson(text, kernel.internal.actions.SingleAction.FULL_SCHEMA, java.Optional.empty())
            rows.add(batch.getRows().next())
        return kernel.internal.util.Utils.toCloseableIterator(rows.iterator())


def _deferred(done: Any) -> list[Any]:
    return [hook for hook in done.getPostCommitHooks() if str(hook.getType()) in _DEFERRED]


def _without_listing(hook: Any, after: Any) -> Any:
    return _Checkpoint(after.get()) if str(hook.getType()) == _CHECKPOINT and after.isPresent() else hook


def _add(file: DataFile) -> str:
    """The action that adds a file (Delta protocol, "Add File"). Kernel gives it its row ids."""
    body = {
        "path": quote(file.path, safe=_PLAIN),
        "partitionValues": file.partition,
        "size": file.size,
        "modificationTime": file.modified,
        "dataChange": True,
        "stats": file.stats,
    }
    return json.dumps({"add": body})


def _metadata(on: KernelSnapshot, metadata: Metadata, schema_json: str) -> str:
    """The action that changes the schema, and nothing else (Delta protocol, "Change Metadata")."""
    said = on.java.getMetadata()
    others = {"name": said.getName(), "description": said.getDescription(), "createdTime": said.getCreatedTime()}
    body = {
        "id": metadata.table_id,
        "format": {"provider": metadata.provider, "options": {}},
        "schemaString": schema_json,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        **{name: found.get() for name, found in others.items() if found.isPresent()},
    }
    return json.dumps({"metaData": body})


@contextmanager
def _in_words(table: str) -> Iterator[None]:
    """Errors of the JVM as errors of the tree."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        name = str(error.java_exception.getClass().getSimpleName())
        problem = f"{name}: {error.java_exception.getMessage()}"
        if name in _CONFLICTS:
            raise CommitConflict(table=table, problem=problem) from error
        if name == "TableNotFoundException":
            raise TableNotFound(path=table, hint="") from error
        raise KernelFailed(table=table, problem=problem) from error
    except (Py4JError, OSError) as error:
        raise KernelFailed(table=table, problem=f"its JVM does not answer: {error}") from error
