"""A hook of mkdocs: what pages link to outside docs/ becomes a page of the site.

In a checkout `[the sweep](../sweeps/quickstart.yaml)` opens that file. The site has docs/ alone, and no public address
of the repository to link to. So each such file is shown below `repository/`, and the links lead there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
DOCS, SHOWN = "docs/", "repository/"
# Code is matched first, so that what looks like a link in it is none.
LINK = re.compile(r"```.*?```|`[^`\n]*`|(?<=\]\()(?P<target>[^()\s]+)(?=\))", re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Adds the files that pages link to, and those that these link to in turn."""
    from mkdocs.structure.files import File

    waiting = [DOCS + file.src_uri for file in files.documentation_pages()]
    seen = set(waiting)
    for file in waiting:
        for target, _ in links(file):
            if target in seen or target.startswith(DOCS) or not (ROOT / target).is_file():
                continue
            seen.add(target)
            files.append(File.generated(config, place(target), content=shown(target)))
            if target.endswith(".md"):
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Turns links to files outside docs/ into links to their pages."""
    source = page.file.src_uri
    if source.startswith(SHOWN):  # already done by `shown`
        return markdown
    return relinked(markdown, DOCS + source)


def links(file: str) -> Iterator[tuple[str, str]]:
    """The relative links of a page of the repository: the file or folder each leads to, from ROOT, and its anchor."""
    for match in LINK.finditer((ROOT / file).read_text(encoding="utf-8")):
        if (written := match["target"]) and (found := _resolved(written, file)):
            yield found


def relinked(markdown: str, file: str) -> str:
    """The text of `file`, its relative links as they are in the site."""

    def link(match: re.Match[str]) -> str:
        found = _resolved(match["target"], file) if match["target"] else None
        if found is None:
            return match[0]
        target, anchor = found
        path = posixpath.relpath(place(target), posixpath.dirname(place(file)) or ".")
        return f"{path}#{anchor}" if anchor else path

    return LINK.sub(link, markdown)


def place(file: str) -> str:
    """Where a file of the repository is in the site's sources."""
    if file.startswith(DOCS):
        return file.removeprefix(DOCS)
    return SHOWN + file if file.endswith(".md") else f"{SHOWN}{file}.md"


def shown(file: str) -> str:
    """The page that shows a file of the repository."""
    text = (ROOT / file).read_text(encoding="utf-8")
    hidden = "---\nsearch: {exclude: true}\n---\n\n"
    if file.endswith(".md"):
        return hidden + relinked(text, file)
    return f"{hidden}# {file}\n\n```{Path(file).suffix.removeprefix('.')}\n{text}```\n"


def _resolved(written: str, file: str) -> tuple[str, str] | None:
    """The file and the anchor that a link leads to; None: it leads out of the repository."""
    parts = urlsplit(written)
    if parts.scheme or parts.netloc:
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), parts.path)) if parts.path else file
    return path, parts.fragment
