"""Commands, configs and data in the pages are what the program takes, whether they are run or not."""

import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.doc_blocks import FENCE
from tools.docs import ROOT
from typer.main import get_command

from thoughtgate.cli.app import COMMANDS
from thoughtgate.cli.entry import SHIM_HELP
from thoughtgate.config.load import load_settings
from thoughtgate.config.parse import parse
from thoughtgate.errors import ConfigError

PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS: Final = frozenset({"", "sh", "console", "text"})
ENDS: Final = frozenset({"|", ">", "<", "&&", "||", ";", "&", "2>", ">>"})
INLINE: Final = re.compile(r"`(thoughtgate [^`\n]+)`")
WEBHOOK_TEXT: Final = ["webhook", "1"]
"""What a signature of the webhook begins with; no command."""
STANDS_FOR: Final = re.compile(r"[A-Z…./\[\]]|\.\.\.")
"""Words in the place of which readers write their own."""


def _page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _lines(page: Path) -> Iterator[str]:
    """Yield the command lines of a page: in its blocks, and in its sentences."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        if (found["info"].split() or [""])[0] in SHELLS:
            for line in found["body"].replace("\\\n", " ").splitlines():
                bare = line.strip().removeprefix("$ ").removeprefix("> ")
                if bare.startswith("thoughtgate ") and not bare.startswith("thoughtgate: "):
                    yield bare
    yield from INLINE.findall(FENCE.sub("", text))


def _words(line: str) -> list[str]:
    """Return the words of the first command of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in ENDS:
            break
        words.append(word)
    return words


def _tree(name: str) -> Any:
    entry = next((one for one in COMMANDS if one.name == name), None)
    if entry is None or not entry.module:
        return None
    return get_command(importlib.import_module(f"thoughtgate.cli.{entry.module}").app)


def _problem(line: str) -> str:
    """Return what is wrong with a command line; empty if nothing is."""
    words = _words(line)[1:]
    if not words or words[0] in {"--help", "--version", "COMMAND"} or words[0].startswith("-"):
        return ""
    name, *rest = words
    name = name.rstrip(".,")
    if words == WEBHOOK_TEXT:
        return ""
    if name not in {one.name for one in COMMANDS}:
        return f"no command {name!r}"
    options = (
        set(re.findall(r"(?<!\w)--?[\w-]+", SHIM_HELP)) if name == "shim" else {"-h", "--help"}
    )
    command = _tree(name)
    while command is not None:
        options |= {one for each in command.params for one in (*each.opts, *each.secondary_opts)}
        inner = getattr(command, "commands", {})
        if not inner or not rest or rest[0].startswith("-"):
            break
        if rest[0] not in inner:
            return "" if STANDS_FOR.search(rest[0]) else f"no subcommand {rest[0]!r} of {name}"
        command, rest = inner[rest[0]], rest[1:]
    given = rest[: rest.index("--")] if "--" in rest else rest
    unknown = [
        one.split("=")[0]
        for one in given
        if re.match(r"--?[a-z]", one) and one.split("=")[0] not in options
    ]
    return f"no option {unknown[0]} of {name}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=_page_id)
def test_commands_and_options_exist(page: Path) -> None:
    wrong = [f"{line}: {problem}" for line in _lines(page) if (problem := _problem(line))]

    assert not wrong, "\n".join(wrong)


def test_a_wrong_command_would_be_found() -> None:
    assert _problem("thoughtgate statsu") == "no command 'statsu'"
    assert _problem("thoughtgate servers lst") == "no subcommand 'lst' of servers"
    assert _problem("thoughtgate status --nonsense | jq .") == "no option --nonsense of status"
    assert _problem("thoughtgate wrap --dry-run -- claude --resume") == ""


CEDAR: Final = "permit(principal, action, resource);"
CHANNELS: Final = {"folder": "of the guide to channels"}
"""The channels that readers have made when they write the config."""


def _configs(page: Path) -> Iterator[str]:
    for found in FENCE.finditer(page.read_text("utf-8")):
        language, *marks = found["info"].split() or [""]
        if language == "yaml" and "part" not in marks:
            yield found["body"]


OTHER_YAML: Final = ("tests:", "apiVersion:", "services:", "image:", "kind:", "rules:\n  custom:")
"""Beginnings of YAML that is no config: expectations, Kubernetes and compose files."""


def _is_config(text: str) -> bool:
    keys = re.findall(r"^([A-Za-z_]+):", text, re.MULTILINE)
    known = {"schema", "default", "servers", "rules", "approval", "limits", "audit", "redact"}
    return not text.lstrip("# \n").startswith(OTHER_YAML) and bool(known & set(keys))


@pytest.mark.parametrize("page", [page for page in PAGES if any(_configs(page))], ids=_page_id)
def test_configs_are_valid(page: Path) -> None:
    wrong = []
    for body in filter(_is_config, _configs(page)):
        text = body if re.search("^default:", body, re.MULTILINE) else f"default: deny\n{body}"
        text = text if re.search("^schema:", text, re.MULTILINE) else f"schema: 1\n{text}"
        names = set(re.findall(r"\$\{(\w+)", text))
        environ = dict.fromkeys(names, "x")
        try:
            parse(text, file="t.yaml")
            load_settings(
                text,
                file="t.yaml",
                env=environ,
                read_text=lambda _: CEDAR,
                channels=lambda: CHANNELS,
            )
        except ConfigError as error:
            wrong += [f"{problem}\n{body}" for problem in error.problems]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=_page_id)
def test_json_is_json(page: Path) -> None:
    for found in FENCE.finditer(page.read_text("utf-8")):
        if (found["info"].split() or [""])[0] == "json":
            try:
                json.loads(found["body"])
            except ValueError:  # or a value per line
                list(map(json.loads, found["body"].splitlines()))


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text("utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
        assert named <= targets, (page, named - targets)


def test_every_picture_is_made_by_a_target_and_used() -> None:
    """A picture that no page shows goes stale unseen."""
    images = {one.name for one in (ROOT / "docs" / "images").iterdir()}
    used = set()
    for page in PAGES:
        text = re.sub("`[^`\n]*`", "", page.read_text("utf-8"))
        for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text):
            assert (page.parent / target).is_file(), (page, target)
            used.add(Path(target).name)
    assert images - used <= {"mark.svg", "tui-servers.svg"}
