"""Policy packs: reviewed rule files in the package, from which ``init --pack`` writes a config.

The rules of several packs are put into one list: first rules that deny, so that no other rule
matches their calls before them, then rules that depend on facts, then the others, and finally the
rules of the starter policy.
"""

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Final, NamedTuple

from thoughtgate.errors import UsageError
from thoughtgate.policy.starter import STARTER_SERVERS, STARTER_TEXT

PACKS: Final = ("filesystem", "git", "github", "databases", "shell", "lethal-trifecta")
"""The names of all packs."""

_SUMMARY: Final = re.compile(r"^- `([a-z-]+)`: (.+)$", re.MULTILINE)
_SECTION: Final = re.compile(r"^(servers|rules):\n", re.MULTILINE)
_ENTRY: Final = re.compile(r"(?:^  #.*\n)*^  - id: .*\n(?:^(?:    .*)?\n)*", re.MULTILINE)
_ACTION: Final = re.compile(r"^    action: deny$", re.MULTILINE)
_FACTS: Final = re.compile(r"^    when_facts: ", re.MULTILINE)


class Pack(NamedTuple):
    """One pack, as the text of its parts."""

    name: str
    about: str
    """The comment at its beginning."""
    servers: str
    rules: tuple[str, ...]
    """The text of each rule, with the comment before it."""
    tests: str
    """The entries of its expectations."""


def read_pack(name: str) -> Pack:
    """Read a pack.

    Raises:
        UsageError: there is no such pack.
    """
    if name not in PACKS:
        raise UsageError(f"there is no pack {name!r}; the packs are {', '.join(PACKS)}")
    about, _, servers, _, rules = _SECTION.split(_text(f"{name}.yaml"))
    tests = _text(f"{name}.tests.yaml").removeprefix("tests:\n")
    return Pack(name, about.rstrip(), servers.rstrip(), tuple(_ENTRY.findall(rules)), tests)


def summaries() -> dict[str, str]:
    """Return what each pack is for."""
    return dict(_SUMMARY.findall(_text("README.md")))


def compose_config(names: Sequence[str]) -> str:
    """Return the text of a config with the rules of these packs and of the starter policy.

    Raises:
        UsageError: there is no such pack.
    """
    packs = [read_pack(name) for name in PACKS if name in _known(names)]
    rules = sorted((rule for pack in packs for rule in pack.rules), key=_rank)
    head, _, rest = STARTER_TEXT.partition("# Servers need an entry")
    _, _, rest = rest.partition("# The first rule that matches decides.\nrules:\n")
    listed = ", ".join(pack.name for pack in packs)
    abouts = "\n#\n".join(f"# Pack {pack.name}:\n{pack.about}" for pack in packs)
    servers = "\n".join(pack.servers for pack in packs)
    text = "\n".join(rule.rstrip() + "\n" for rule in rules)
    return (
        f"{head}# Policy packs: {listed}.\n#\n{abouts}\n\nservers:\n{STARTER_SERVERS}{servers}\n\n"
        f"# The first rule that matches decides.\nrules:\n{text}\n{rest}"
    )


def compose_expectations(names: Sequence[str]) -> str:
    """Return the text of the expectations of these packs.

    Raises:
        UsageError: there is no such pack.
    """
    packs = [read_pack(name) for name in PACKS if name in _known(names)]
    parts = "".join(f"  # Pack {pack.name}\n{pack.tests}" for pack in packs)
    return f"# Run: thoughtgate policy test FILE -c CONFIG\ntests:\n{parts}"


def _known(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        read_pack(name)
    return names


def _rank(rule: str) -> int:
    if _ACTION.search(rule):
        return 0
    return 1 if _FACTS.search(rule) else 2


def _text(file: str) -> str:
    return files("thoughtgate").joinpath("packs", file).read_text("utf-8")
