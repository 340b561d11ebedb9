"""The address of the ingest service: this host alone, unless what is sent is encrypted."""

from __future__ import annotations

import ipaddress

from tidemark.channels.model.jobs import ServeIngest
from tidemark.errors import InvalidArgument

__all__ = ["require_safe_address"]

_HERE = "localhost"
_HIGHEST_PORT = 65_535


def require_safe_address(service: ServeIngest) -> None:
    """Raises InvalidArgument for an address that others reach without a certificate: they could read tokens."""
    if not 0 <= service.port <= _HIGHEST_PORT:
        raise InvalidArgument(argument="port", value=service.port, problem=f"it must be from 0 to {_HIGHEST_PORT}")
    if (service.certificate is None) != (service.key is None):
        problem = "a certificate needs its key, and a key its certificate"
        raise InvalidArgument(argument="certificate", value=service.certificate, problem=problem)
    if not (_is_here(service.host) or service.certificate is not None or service.behind_proxy):
        problem = "others could read the tokens on their way; give a certificate and its key, or behind_proxy"
        raise InvalidArgument(argument="host", value=service.host, problem=problem)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == _HERE
