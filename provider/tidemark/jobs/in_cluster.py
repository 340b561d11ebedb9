"""`spark-submit --deploy-mode cluster …/jobs/in_cluster.py ARCHIVE SHA256 SPEC SHA256`: one job in a cluster.

The file travels alone, so it imports nothing of Tidemark before it has the archive. Archive and spec come from the
lake, which others may write, so both are checked by the hashes of the command line.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ENVIRONMENT = "TIDEMARK_SECRETS"
STORAGE_OPTIONS = "TIDEMARK_STORAGE_OPTIONS"


def main(arguments: list[str]) -> int:
    """The exit code of the job. Raises SystemExit if archive or spec are not those that were submitted."""
    archive_uri, archive_hash, spec_uri, spec_hash = arguments
    os.environ.update(json.loads(base64.b64decode(os.environ.pop(ENVIRONMENT, "") or b"e30=")))
    use_storage_options(archive_uri, json.loads(os.environ.get(STORAGE_OPTIONS) or "{}"))
    here = Path.cwd()  # the container's own directory
    archive = fetched(archive_uri, archive_hash, here / "tidemark-spark-side.zip")
    spec = fetched(spec_uri, spec_hash, here / "tidemark-spec.json")
    sys.path.insert(0, str(archive))
    from tidemark.jobs.__main__ import main as run_job

    return run_job([str(spec)])


def use_storage_options(uri: str, options: dict[str, Any]) -> None:
    """Lets all files of the job's storage be opened with these options, as result and cancel marker are."""
    import fsspec

    scheme = urlsplit(uri).scheme
    if options and scheme not in ("", "file"):
        known: dict[str, dict[str, Any]] = fsspec.config.conf
        known[scheme] = {**known.get(scheme, {}), **options}


def fetched(uri: str, sha256: str, file: Path) -> Path:
    """The file, with the content of `uri`. Raises SystemExit, and writes nothing, for another content."""
    import fsspec

    with fsspec.open(uri, "rb") as source:
        content = source.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise SystemExit(f"tidemark: {uri} is not what the worker wrote, so nothing of it is run.")
    file.write_bytes(content)
    return file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
