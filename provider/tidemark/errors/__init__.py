"""The one error tree. The docstring of a class is its message, filled with the facts that it carries as attributes.
`tidemark.errors.tree` draws the tree.
"""

# ruff: noqa: F403 - each module lists its own classes
from __future__ import annotations

from tidemark.errors import (
    acceleration,
    change_streams,
    channels,
    clustering,
    clusters,
    external_tables,
    jobs,
    kafka,
    kept_views,
    objects,
    pipes,
    protocol,
    replication,
    results,
    search,
    sources,
    sql,
    stores,
    streams,
    targets,
    tree,
    views,
)
from tidemark.errors.acceleration import *
from tidemark.errors.change_streams import *
from tidemark.errors.channels import *
from tidemark.errors.clustering import *
from tidemark.errors.clusters import *
from tidemark.errors.clusters import ClusterUnreachable
from tidemark.errors.external_tables import *
from tidemark.errors.jobs import *
from tidemark.errors.kafka import *
from tidemark.errors.kafka import BrokerUnreachable
from tidemark.errors.kept_views import *
from tidemark.errors.objects import *
from tidemark.errors.pipes import *
from tidemark.errors.protocol import *
from tidemark.errors.replication import *
from tidemark.errors.results import *
from tidemark.errors.search import *
from tidemark.errors.sources import *
from tidemark.errors.sources import StorageUnreachable
from tidemark.errors.sql import *
from tidemark.errors.stores import *
from tidemark.errors.stores import StoreBusy, StoreUnreachable
from tidemark.errors.streams import *
from tidemark.errors.targets import *
from tidemark.errors.tree import *
from tidemark.errors.tree import ConnectionUnreadable
from tidemark.errors.views import *

PASSING = (
    ConnectionUnreadable,
    StorageUnreachable,
    StoreUnreachable,
    StoreBusy,
    BrokerUnreachable,
    ClusterUnreachable,
)
"""Errors that may be over in a minute. A caller that waits anyway asks again."""

__all__ = ["PASSING"]
__all__ += acceleration.__all__
__all__ += change_streams.__all__
__all__ += channels.__all__
__all__ += clustering.__all__
__all__ += clusters.__all__
__all__ += external_tables.__all__
__all__ += jobs.__all__
__all__ += kafka.__all__
__all__ += kept_views.__all__
__all__ += objects.__all__
__all__ += pipes.__all__
__all__ += protocol.__all__
__all__ += replication.__all__
__all__ += results.__all__
__all__ += search.__all__
__all__ += sources.__all__
__all__ += sql.__all__
__all__ += stores.__all__
__all__ += streams.__all__
__all__ += targets.__all__
__all__ += tree.__all__
__all__ += views.__all__
