"""Each kind of job names a function of the driver's side that takes its request and returns its report."""

from __future__ import annotations

import importlib
import typing
from pathlib import Path

import pytest

import tidemark
from tidemark.errors import InvalidArgument
from tidemark.jobs.entries import entry_of, request_type
from tidemark.model.jobs import Job

PACKAGE = Path(tidemark.__file__).parent


def all_jobs() -> list[Job[typing.Any, typing.Any]]:
    """Wherever one is defined: beside the dataclasses that it names."""
    places = (file.relative_to(PACKAGE).with_suffix("").parts for file in sorted(PACKAGE.rglob("*.py")))
    modules = [
        importlib.import_module(".".join(("tidemark", *parts)).removesuffix(".__init__"))
        for parts in places
        if {"model", "planning"} & set(parts)
    ]
    jobs = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Job)}
    return list(jobs.values())


@pytest.mark.parametrize("job", all_jobs(), ids=lambda job: job.name)
def test_its_function_takes_its_request_and_returns_its_report(job: Job[typing.Any, typing.Any]) -> None:
    entry = entry_of(job.entry)
    assert request_type(entry) is job.request
    assert typing.get_type_hints(entry)["return"] is job.report


def test_names_are_told_apart() -> None:
    names = [job.name for job in all_jobs()]
    assert len(names) > 10
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "entry",
    ["os:system", "streams.driver.job_write", "streams.driver.job_write:no", "no.such:thing", "../x:y", "jobs:Any "],
)
def test_what_is_no_job_of_this_release_is_refused(entry: str) -> None:
    with pytest.raises(InvalidArgument, match="no such job"):
        entry_of(entry)
