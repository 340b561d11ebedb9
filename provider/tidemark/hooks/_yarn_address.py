"""The resource manager of a Spark connection: named there, or in the yarn-site.xml of this worker."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from tidemark.errors import SparkMasterUnfit
from tidemark.hooks.yarn import ResourceManager, addresses_from
from tidemark.model.yarn import web_addresses

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["ADDRESS", "resource_manager"]

ADDRESS = "yarn_resourcemanager_webapp_address"
"""The extra of the Spark connection, which the Spark provider has for it."""


def resource_manager(connection: Connection, environment: Mapping[str, str] = os.environ) -> ResourceManager:
    """The resource manager of the connection's YARN. Raises SparkMasterUnfit if none is named, and InvalidArgument."""
    named = str(connection.extra_dejson.get(ADDRESS) or "").strip()
    addresses = addresses_from(named) if named else _of_the_site(environment)
    if not addresses:
        problem = (
            f"the address of YARN's REST interface is unknown. Set the extra {ADDRESS} of the Spark connection, or "
            "yarn.resourcemanager.webapp.address in yarn-site.xml of HADOOP_CONF_DIR"
        )
        raise SparkMasterUnfit(master="'yarn'", problem=problem)
    return ResourceManager(addresses)


def _of_the_site(environment: Mapping[str, str]) -> tuple[str, ...]:
    for variable in ("YARN_CONF_DIR", "HADOOP_CONF_DIR"):
        file = Path(environment.get(variable) or os.devnull) / "yarn-site.xml"
        try:
            return web_addresses(_properties(file))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ElementTree.ParseError) as error:
            raise SparkMasterUnfit(master="'yarn'", problem=f"{file} cannot be read: {error}") from error
    return ()


def _properties(file: Path) -> dict[str, str]:
    root = ElementTree.parse(file).getroot()
    named = {one.findtext("name", "").strip(): one.findtext("value", "").strip() for one in root.iter("property")}
    return {name: value for name, value in named.items() if name}
