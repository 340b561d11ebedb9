"""A second look for a connection that Airflow has not found.

Airflow passes over a secrets backend that fails, so its answer for an unreadable connection is that of a missing one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError, ErrorType

from tidemark.errors import ConnectionUnreadable, InvalidArgument

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["found_at_last"]


def found_at_last(conn_id: str) -> Connection | None:
    """The connection; None if every secrets backend says that it does not exist.

    Raises ConnectionUnreadable, and InvalidArgument for one that does not parse. Airflow quotes such a connection with
    its password, which nothing masks yet. So neither its words nor the cause are shown.
    """
    from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded

    for backend in ensure_secrets_backend_loaded():
        name = type(backend).__name__
        try:
            found = _answer_of(backend, conn_id)
        except OSError as error:  # of the network, some of which are ValueErrors, too
            raise _unreadable(conn_id, name, error) from error
        except (ValueError, TypeError):
            problem = f"the secrets backend {name} has a connection of that name that is no valid URI or JSON"
            raise InvalidArgument(argument="conn_id", value=conn_id, problem=problem) from None
        except AirflowException as error:  # of a URI that does not parse, for one
            raise ConnectionUnreadable(connection=conn_id, backend=name, problem=type(error).__name__) from None
        except Exception as error:
            raise _unreadable(conn_id, name, error) from error
        if found is not None:
            return found
    return None


def _unreadable(conn_id: str, backend: str, error: Exception) -> ConnectionUnreadable:
    return ConnectionUnreadable(connection=conn_id, backend=backend, problem=f"{type(error).__name__}: {error}")


def _answer_of(backend: Any, conn_id: str) -> Connection | None:
    """Airflow's own backend takes every failure of its API for a missing connection, so the API itself is asked."""
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import ErrorResponse, GetConnection
    from airflow.sdk.execution_time.context import _process_connection_result_conn
    from airflow.sdk.execution_time.secrets import ExecutionAPISecretsBackend

    if not isinstance(backend, ExecutionAPISecretsBackend):
        found: Connection | None = backend.get_connection(conn_id=conn_id)
        return found
    answer = task_runner.SUPERVISOR_COMMS.send(GetConnection(conn_id=conn_id))
    if not isinstance(answer, ErrorResponse):
        return _process_connection_result_conn(answer)
    if answer.error is ErrorType.CONNECTION_NOT_FOUND:
        return None
    raise AirflowRuntimeError(answer)
