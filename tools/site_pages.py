"""Hooks of the documentation site: links to files of the repository, and the size of pages.

The pages in ``docs/`` link to files outside of it, such as those in ``deploy/``. These work in the
repository but not on the site, so the site gets the address of the file in the repository.
"""

import posixpath
import re
from pathlib import Path
from typing import Any, Final

MAX_PAGE: Final = 300_000
"""Largest page, in bytes with its own pictures: pages must open at once, also on a phone."""

_LINK: Final = re.compile(r"\]\(((?:\.\./)+[^)\s#]*)")
_PICTURE: Final = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return a page's text with links that leave ``docs/`` as URLs of the repository."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def lead(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        if path == "docs" or path.startswith("docs/"):
            return found[0]
        return f"]({config['repo_url']}/blob/main/{path}"

    return _LINK.sub(lead, markdown)


def on_post_page(output: str, *, page: Any, config: Any, **_: Any) -> str:
    """Let the build fail for a page that is too large.

    Raises:
        ValueError: it is.
    """
    folder = Path(config["docs_dir"], page.file.src_uri).parent
    pictures = {folder / name for name in _PICTURE.findall(page.markdown or "")}
    size = len(output.encode()) + sum(one.stat().st_size for one in pictures if one.is_file())
    if size > MAX_PAGE:
        raise ValueError(
            f"{page.file.src_uri} has {size:,} bytes; at most {MAX_PAGE:,} are allowed"
        )
    return output
