"""A hook of the documentation site: links to files of the repository lead to the repository.

The pages in ``docs/`` link to files outside of it, such as those in ``deploy/``. These work in the
repository but not on the site, so the site gets the address of the file in the repository.
"""

import posixpath
import re
from typing import Any, Final

_LINK: Final = re.compile(r"\]\(((?:\.\./)+[^)\s#]*)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Return a page's text with links that leave ``docs/`` as URLs of the repository."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def lead(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        if path == "docs" or path.startswith("docs/"):
            return found[0]
        return f"]({config['repo_url']}/blob/main/{path}"

    return _LINK.sub(lead, markdown)
