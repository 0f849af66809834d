"""Write the generated documentation pages, or list those that are out of date.

A page ``docs/reference/NAME.md`` comes from ``render()`` in ``tools/docs_NAME.py``, and pages
``docs/reference/NAME/PART.md`` from its ``render_parts()``, if it has that. The pages of agents come from
``tools/agent_pages.py``. The ``README.md`` of a folder lists the folder's pages in
the order of the site, each with its first sentence.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # run as a program, only this folder is on the path
    sys.path.insert(0, str(ROOT))

PREFIX: Final = "docs_"

INDEXES: Final = {
    "guides": "# Guides\n\nStep-by-step instructions for one task each.\n"
    "[Agents](agents/README.md) has a page for each agent: what is governed, how, and what is not.\n",
    "guides/agents": "# Agents\n\nWhat `thoughtgate wrap` and `thoughtgate install` govern for each agent.\n",
    "cookbook": "# Cookbook\n\nPolicies to copy, each with verdicts that are tested.\n",
    "concepts": "# Concepts\n\nHow it works and why.\n",
    "reference": "# Reference\n\nThese pages are generated from the code with `make docs`.\n",
}
"""Folder -> the text above its list of pages."""


INDEX: Final = "README.md"


class Page(NamedTuple):
    """One generated page."""

    path: Path
    text: str

    @property
    def is_stale(self) -> bool:
        """Whether the file differs from what its generator returns."""
        return not self.path.is_file() or self.path.read_text("utf-8") != self.text


def pages() -> Iterator[Page]:
    """Render every page."""
    for source in sorted((ROOT / "tools").glob(f"{PREFIX}*.py")):
        module = importlib.import_module(f"tools.{source.stem}")
        if not hasattr(module, "render"):
            continue
        name = source.stem.removeprefix(PREFIX).replace("_", "-")
        yield Page(ROOT / "docs" / "reference" / f"{name}.md", module.render())
        if hasattr(module, "render_parts"):
            for part, text in module.render_parts():
                yield Page(ROOT / "docs" / "reference" / name / f"{part}.md", text)
    agents = importlib.import_module("tools.agent_pages").render_pages()
    yield from (
        Page(ROOT / "docs" / "guides" / "agents" / f"{name}.md", text) for name, text in agents
    )
    for folder, head in INDEXES.items():
        place = ROOT / "docs" / folder
        own = [path for path in sorted(place.glob("*.md"), key=_position) if path.name != INDEX]
        yield Page(place / INDEX, head + "\n" + "".join(map(_line, own)))


def _position(path: Path) -> tuple[int, str]:
    """Return where the site lists a page: in the order in which people need them."""
    listed = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    name = path.relative_to(ROOT / "docs").as_posix()
    return listed.index(name) if name in listed else len(listed), name


def _line(path: Path) -> str:
    """Return a page's entry: its title, and the first line of its first paragraph."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", path.read_text("utf-8"))
    lines = prose.splitlines()
    title = next(line for line in lines if line.startswith("# ")).removeprefix("# ")
    first = next((line for line in lines if line[:1].isalnum() or line[:1] == "`"), "")
    return f"- [{title}]({path.name}): {first}\n"


def main() -> int:
    """Write the stale pages, or list them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the pages that are out of date")
    options = parser.parse_args()
    stale = []
    for page in pages():
        if not page.is_stale:
            continue
        stale.append(page)
        place = page.path.relative_to(ROOT)
        if options.write:
            page.path.parent.mkdir(exist_ok=True)
            page.path.write_text(page.text, "utf-8")
            print(f"wrote {place}")
        else:
            print(f"{place} is out of date: run make docs", file=sys.stderr)
    return 0 if options.write else int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
