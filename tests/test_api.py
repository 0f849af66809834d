"""The public API of the root package: every name is there, documented, and loaded when used."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import thoughtgate

OWN = ("load_policy", "judge", "open_gate", "EmbeddedGate", "EmbeddedConnection", "ChannelContext")
"""What was written for programs that use the package, so each has an example."""


def _names_for_type_checkers() -> dict[str, str]:
    tree = ast.parse(Path(str(thoughtgate.__file__)).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module).removeprefix("thoughtgate.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("name", [one for one in thoughtgate.__all__ if one != "__version__"])
def test_every_name_is_there_and_documented(name: str) -> None:
    assert inspect.getdoc(getattr(thoughtgate, name))
    assert name in dir(thoughtgate)


def test_type_checkers_see_what_is_loaded() -> None:
    assert _names_for_type_checkers() == thoughtgate._MODULES
    assert set(thoughtgate._MODULES) == set(thoughtgate.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = thoughtgate.no_such_name  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", OWN)
def test_what_programs_use_has_an_example(name: str) -> None:
    thing = getattr(thoughtgate, name)
    members = vars(thing).items() if inspect.isclass(thing) else ()
    methods = [one for label, one in members if inspect.isfunction(one) and label[0] != "_"]

    for each in (thing, *methods) if name.startswith("Embedded") else (thing,):
        assert ">>> " in (inspect.getdoc(each) or ""), each


def test_the_guide_names_only_what_the_api_offers() -> None:
    guides = Path(__file__).parents[1] / "docs" / "guides"
    for guide in ("embedding.md", "custom-channel.md"):
        text = (guides / guide).read_text("utf-8")
        named = re.findall(r"thoughtgate\.([A-Z]\w+|judge|load_\w+|open_\w+)", text)
        imported = re.findall(r"^from thoughtgate import (.*)$", text, re.MULTILINE)
        named += [one.strip() for line in imported for one in line.split(",")]
        assert named
        assert set(named) <= set(thoughtgate.__all__)
