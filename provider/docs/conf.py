"""The docs as a site: `make docs` builds it into build/docs, without a network and with warnings as errors.

Pages are plain Markdown, readable where the repository is. The build adds two things. Links between the comments
`navigation` and `end of navigation` of a page become its part of the navigation. Links to files outside of this folder
lead to the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

project = "Tidemark"
author = "the contributors of Tidemark"
project_copyright = "the contributors of Tidemark, Apache License 2.0"
extensions = ["myst_parser"]
exclude_patterns: list[str] = []
highlight_language = "none"
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Tidemark"
html_copy_source = False
html_show_sphinx = False
html_theme_options: dict[str, Any] = {
    "source_repository": "https://github.com/tidemark-cdc/tidemark/",
    "source_branch": "main",
    "source_directory": "provider/docs/",
}

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REPOSITORY = "https://github.com/tidemark-cdc/tidemark/blob/main/"
NAVIGATION = re.compile(r"<!-- navigation -->\n(.*?)<!-- end of navigation -->", re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!https?://|#)([^)\s#]+)((?:#[^)\s]*)?)(?=\))")

log = logging.getLogger(__name__)


def _read(app: Sphinx, document: str, source: list[str]) -> None:
    """What Sphinx gets of a page."""
    page = Path(app.env.doc2path(document))
    text = NAVIGATION.sub(lambda found: found[1] + _toctree(page, found[1]), source[0])
    source[0] = LINK.sub(lambda link: _outside(page, document, link), text)


def _toctree(page: Path, links: str) -> str:
    """The pages that are linked, in their order; links to headings and to other files make no entry."""
    paths = [path for path, anchor in LINK.findall(links) if path.endswith(".md") and not anchor]
    entries = [(page.parent / path).resolve().relative_to(HERE).with_suffix("") for path in paths]
    lines = "\n".join(f"/{entry.as_posix()}" for entry in dict.fromkeys(entries))
    return f"\n```{{toctree}}\n:hidden:\n\n{lines}\n```\n"


def _outside(page: Path, document: str, link: re.Match[str]) -> str:
    """A link to a file that is no part of the site leads to the repository."""
    target = (page.parent / link[1]).resolve()
    if target.is_relative_to(HERE):
        return link[0]
    if not target.exists():
        log.warning("no such file in the repository: %s", link[1], location=document)
    return f"{REPOSITORY}{target.relative_to(ROOT).as_posix()}{link[2]}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls it."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
