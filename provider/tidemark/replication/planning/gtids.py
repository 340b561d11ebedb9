"""Sets of transactions by their GTIDs, as a MySQL and a MariaDB write them. Pure.

A MySQL has sets of intervals, `uuid:1-5:9`. A MariaDB has the newest GTID of each domain, `0-901-17`; a domain is a
sequence of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import SourceKind

__all__ = ["Domains", "Gtids", "Intervals", "Pending", "parse_gtids"]

_INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")
_OF_DOMAIN = re.compile(r"(\d+)-(\d+)-(\d+)")


class Pending(Protocol):
    """Captured transactions that a log has behind a place. It is true while some were not met yet."""

    def take(self, gtid: str) -> bool:
        """Meet a transaction, in the order of the log. Returns whether it is one of them."""
        ...

    def copy(self) -> Pending:
        """As it is now."""
        ...

    def __bool__(self) -> bool: ...

    @property
    def text(self) -> str:
        """The ones that were not met, as the database writes them."""
        ...


class Gtids(Protocol):
    """A set of transactions, which grows in the order of a log."""

    @property
    def text(self) -> str:
        """As the database writes it; "" for none."""
        ...

    def add(self, gtid: str) -> None:
        """One more transaction."""
        ...

    def had(self, gtid: str) -> bool:
        """Whether it is one of them, so that a log which has it behind all of them is another one."""
        ...


class Intervals:
    """A set of a MySQL. A tag is part of the name of a sequence: `uuid:tag:1-5`."""

    def __init__(self, text: str = "") -> None:
        self._of: dict[str, list[tuple[int, int]]] = {}
        for name, first, last in _intervals(text):
            self._add(name, first, last)

    @property
    def text(self) -> str:
        """Normalised: sorted, and intervals that touch are one."""
        return ",".join(
            ":".join((name, *(str(first) if first == last else f"{first}-{last}" for first, last in spans)))
            for name, spans in sorted(self._of.items())
        )

    def __bool__(self) -> bool:
        return bool(self._of)

    def __contains__(self, gtid: str) -> bool:
        name, _, number = gtid.rpartition(":")
        return any(first <= int(number) <= last for first, last in self._of.get(name.lower(), ()))

    @property
    def count(self) -> int:
        """Of transactions."""
        return sum(last - first + 1 for spans in self._of.values() for first, last in spans)

    def add(self, gtid: str) -> None:
        """`uuid:7`."""
        name, _, number = gtid.rpartition(":")
        self._add(name.lower(), int(number), int(number))

    def had(self, gtid: str) -> bool:
        """Whether it is one of them."""
        return gtid in self

    def without(self, other: Intervals) -> Intervals:
        """The transactions that `other` does not have."""
        rest = Intervals()
        for name, spans in self._of.items():
            taken = other._of.get(name, [])
            left = [part for span in spans for part in _cut(span, taken)]
            if left:
                rest._of[name] = left
        return rest

    def _add(self, name: str, first: int, last: int) -> None:
        spans = self._of.setdefault(name, [])
        if spans and spans[-1][1] + 1 == first:  # the next one of a log, as nearly always
            spans[-1] = (spans[-1][0], last)
            return
        spans.append((first, last))
        spans.sort()
        joined = [spans[0]]
        for one, other in spans[1:]:
            before, end = joined[-1]
            if one <= end + 1:
                joined[-1] = (before, max(end, other))
            else:
                joined.append((one, other))
        self._of[name] = joined


class PendingIntervals:
    """The `Pending` of a MySQL, in which transactions of two logs may have another order."""

    def __init__(self, wanted: Intervals, met: Intervals | None = None) -> None:
        self._wanted, self._met = wanted, met or Intervals()
        self._left = wanted.count - self._met.count

    def take(self, gtid: str) -> bool:
        """A log has each GTID once."""
        taken = bool(gtid) and gtid in self._wanted
        if taken:
            self._met.add(gtid)
            self._left -= 1
        return taken

    def copy(self) -> PendingIntervals:
        """As it is now."""
        return PendingIntervals(self._wanted, Intervals(self._met.text))

    def __bool__(self) -> bool:
        return self._left > 0

    @property
    def text(self) -> str:
        """The ones that were not met."""
        return self._wanted.without(self._met).text


class Domains:
    """A position of a MariaDB: everything up to the newest GTID of each domain."""

    def __init__(self, text: str = "") -> None:
        self._of: dict[int, str] = {}
        for part in _listed(text):
            self.add(part)

    @property
    def text(self) -> str:
        """Sorted by domain."""
        return ",".join(gtid for _, gtid in sorted(self._of.items()))

    def add(self, gtid: str) -> None:
        """The next transaction of its domain."""
        self._of[_parts(gtid)[0]] = gtid

    def had(self, gtid: str) -> bool:
        """A server numbers its own transactions upwards. Those of several servers may be in any order."""
        newest, (domain, server, number) = self._of.get(_parts(gtid)[0]), _parts(gtid)
        return newest is not None and _parts(newest)[:2] == (domain, server) and number <= _parts(newest)[2]

    def missing_from(self, state: str) -> str:
        """The newest GTIDs that a log lacks whose state is this: the last number of each server in each domain.

        Servers of one domain number their transactions apart, so those of another one tell nothing. A domain that the
        log no longer has does not count, unless it has none at all.
        """
        reached = {(domain, server): number for domain, server, number in map(_parts, _listed(state))}
        known = {domain for domain, _ in reached}

        def lacks(gtid: str) -> bool:
            domain, server, number = _parts(gtid)
            return not known or (domain in known and reached.get((domain, server), -1) < number)

        return ",".join(gtid for _, gtid in sorted(self._of.items()) if lacks(gtid))

    def covers(self, other: Domains) -> bool:
        """Whether a log that has all of `other` before a place has nothing before it but what is here."""
        return all(_reaches(self._of.get(domain), gtid) for domain, gtid in other._of.items())

    def without(self, other: Domains) -> Domains:
        """The newest GTIDs of domains in which `other` does not reach as far."""
        rest = Domains()
        rest._of = {domain: gtid for domain, gtid in self._of.items() if not _reaches(other._of.get(domain), gtid)}
        return rest

    def pending(self, before: Domains) -> PendingDomains:
        """Behind a place up to which a log has `before`."""
        return PendingDomains({domain: gtid for domain, gtid in self._of.items() if before._of.get(domain) != gtid})


class PendingDomains:
    """The `Pending` of a MariaDB: in a domain, transactions up to the newest that was captured, by its whole name."""

    def __init__(self, newest: dict[int, str]) -> None:
        self._newest = newest

    def take(self, gtid: str) -> bool:
        """The last one of a domain ends it."""
        if not gtid or (wanted := self._newest.get(domain := _parts(gtid)[0])) is None:
            return False
        if gtid == wanted:
            del self._newest[domain]
        return True

    def copy(self) -> PendingDomains:
        """As it is now."""
        return PendingDomains(dict(self._newest))

    def __bool__(self) -> bool:
        return bool(self._newest)

    @property
    def text(self) -> str:
        """The newest of each domain that was not met."""
        return ",".join(gtid for _, gtid in sorted(self._newest.items()))


def parse_gtids(kind: SourceKind, text: str) -> Gtids:
    """A set as that kind of database writes it. Raises InvalidArgument."""
    return Domains(text) if kind is SourceKind.MARIADB else Intervals(text)


def _listed(text: str) -> Iterator[str]:
    return filter(None, (one.strip() for one in text.split(",")))


def _intervals(text: str) -> Iterator[tuple[str, int, int]]:
    """`uuid:1-3:7:tag:1-2, uuid2:5`; a tag counts for what comes behind it."""
    for part in filter(None, ("".join(one.split()) for one in text.lower().split(","))):
        server, *rest = part.split(":")
        name = server
        for one in rest:
            found = _INTERVAL.fullmatch(one)
            if found is None:
                name = f"{server}:{one}"
            else:
                yield name, int(found[1]), int(found[2] or found[1])


def _cut(span: tuple[int, int], taken: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts of `span` outside of `taken`, which is sorted."""
    first, last = span
    for begin, end in taken:
        if end < first or begin > last:
            continue
        if begin > first:
            yield first, begin - 1
        first = end + 1
    if first <= last:
        yield first, last


def _parts(gtid: str) -> tuple[int, int, int]:
    found = _OF_DOMAIN.fullmatch(gtid)
    if found is None:
        raise InvalidArgument(argument="gtid", value=gtid, problem="a GTID of a MariaDB looks like 0-1-17")
    return int(found[1]), int(found[2]), int(found[3])


def _reaches(newest: str | None, gtid: str) -> bool:
    """Whether a domain that ends at `newest` has `gtid`, by their numbers. Of one number both have to be the same."""
    if newest is None:
        return False
    return newest == gtid or _parts(newest)[2] > _parts(gtid)[2]
