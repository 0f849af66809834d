"""A rewrite undone in a text that others have edited since."""

import json
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.agent_files import OURS, Scene, head, put_behind_gate, server, shim_args

from thoughtgate.agents.entries import Format
from thoughtgate.agents.revert import find_wrapped_entries, revert
from thoughtgate.agents.rewrite import FileRewrite, rewrite
from thoughtgate.errors import ConfigError


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _rewritten(scene: Scene, content: Any) -> FileRewrite:
    scene.write(scene.desktop, content)
    plan = scene.plan()
    plan.require()
    (one,) = put_behind_gate(plan).files
    return one


def _after(one: FileRewrite, edit: Callable[[dict[str, Any]], None]) -> Any:
    """Return the values of a rewritten file after an agent's edit and our revert."""
    values = json.loads(one.content)
    edit(values)
    return json.loads(revert(json.dumps(values).encode(), "json", one.records))


SERVERS = {"a": server("npx", "x", env={"K": "v"}), "b": {"command": "y"}}


def test_without_edits_the_text_is_the_original(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})
    assert revert(one.content, "json", one.records) == one.file.content


def test_of_two_records_of_an_entry_the_one_with_its_command_counts(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": SERVERS})
    old, new = (
        rewrite(scene.plan(), [program], shim_args).files[0]
        for program in ("/old/gate", "/new/gate")
    )
    both = (*new.records, *old.records)

    assert revert(old.content, "json", both) == old.file.content
    assert revert(new.content, "json", both) == old.file.content


@pytest.mark.requirement("EC-STDIO-039")
def test_a_server_that_was_added_stays(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})

    def add(values: dict[str, Any]) -> None:
        values["mcpServers"]["new"] = server("new")
        values["firstStartTime"] = "now"

    assert _after(one, add) == {
        "mcpServers": {**SERVERS, "new": server("new")},
        "firstStartTime": "now",
    }


def test_an_entry_that_was_deleted_stays_deleted(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})
    result = _after(one, lambda values: values["mcpServers"].pop("a"))
    assert result == {"mcpServers": {"b": SERVERS["b"]}}


def test_an_entry_that_was_renamed_keeps_its_new_name(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})

    def rename(values: dict[str, Any]) -> None:
        values["mcpServers"]["z"] = values["mcpServers"].pop("a")

    assert _after(one, rename) == {"mcpServers": {"b": SERVERS["b"], "z": SERVERS["a"]}}


def test_an_entry_that_was_copied_elsewhere_is_undone_in_both_places(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})

    def copy(values: dict[str, Any]) -> None:
        values["projects"] = {"/p": {"mcpServers": {"a2": dict(values["mcpServers"]["a"])}}}

    assert _after(one, copy) == {
        "mcpServers": SERVERS,
        "projects": {"/p": {"mcpServers": {"a2": SERVERS["a"]}}},
    }


def test_an_edit_inside_our_entry_stays(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})

    def edit(values: dict[str, Any]) -> None:
        values["mcpServers"]["a"]["env"] = {"K": "w"}
        values["mcpServers"]["a"]["args"].append("--more")
        values["mcpServers"]["b"]["args"].append("--more")

    assert _after(one, edit) == {
        "mcpServers": {
            "a": server("npx", "x", "--more", env={"K": "w"}),
            "b": {"command": "y", "args": ["--more"]},
        }
    }


MOVED = server("npx", "x", env={"K": "v", "HOME": "/h", "LD_PRELOAD": "l"})


def test_variables_come_back_around_edits(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": {"a": MOVED}})

    def edit(values: dict[str, Any]) -> None:
        entry = values["mcpServers"]["a"]
        assert entry["env"] == {"K": "v", "HOME": "", "LD_PRELOAD": ""}
        entry["env"] |= {"LD_PRELOAD": "theirs", "NEW": "n"}

    env = {"K": "v", "HOME": "/h", "LD_PRELOAD": "theirs", "NEW": "n"}
    assert _after(one, edit) == {"mcpServers": {"a": {**MOVED, "env": env}}}


@pytest.mark.parametrize("args", [None, ["own.js"]])
def test_variables_come_back_to_an_entry_with_another_command(scene: Scene, args: Any) -> None:
    one = _rewritten(scene, {"mcpServers": {"a": MOVED}})

    def take(values: dict[str, Any]) -> None:
        values["mcpServers"]["a"]["command"] = "node"
        if args is not None:
            values["mcpServers"]["a"]["args"] = args

    expected = {**MOVED, "command": "node", "args": args or ["x"]}
    assert _after(one, take) == {"mcpServers": {"a": expected}}


def test_an_entry_that_got_another_command_is_theirs(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})

    def take(values: dict[str, Any]) -> None:
        values["mcpServers"]["a"] = server("node", "own.js")

    assert _after(one, take)["mcpServers"]["a"] == server("node", "own.js")


def test_only_our_words_go_when_the_command_alone_was_changed(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})

    def swap(values: dict[str, Any]) -> None:
        values["mcpServers"]["a"]["command"] = "bunx"
        values["mcpServers"]["b"]["args"] = []

    assert _after(one, swap)["mcpServers"] == {
        "a": server("bunx", "x", env={"K": "v"}),
        "b": {"command": OURS, "args": []},
    }


def test_a_command_is_put_back_by_what_follows_our_words(scene: Scene) -> None:
    scene.agent = "claude-code"
    scene.write(
        scene.home / ".claude.json",
        {
            "mcpServers": {"a": server("user")},
            "projects": {str(scene.project): {"mcpServers": {"a": server("local")}}},
        },
    )
    (one,) = put_behind_gate(scene.plan()).files
    values = json.loads(one.content)
    moved = values["projects"][str(scene.project)]["mcpServers"].pop("a")
    values["mcpServers"]["moved"] = moved
    result = json.loads(revert(json.dumps(values).encode(), "json", one.records))
    assert result["mcpServers"] == {"a": server("user"), "moved": server("local")}


@pytest.mark.parametrize("args", [None, "odd"])
def test_args_of_another_form_come_back(scene: Scene, args: Any) -> None:
    original = {"mcpServers": {"a": {"command": "x", "args": args}}}
    one = _rewritten(scene, original)
    assert _after(one, lambda values: values.update(more=1)) == {**original, "more": 1}


def test_a_remote_entry_comes_back_with_its_keys_in_order(scene: Scene) -> None:
    text = """{
  "mcpServers": {
    "r": {
      "url": "https://r",
      "headers": {
        "X": "y"
      },
      "type": "http",
      "oauth": {}
    },
    "only": {"url": "https://o"}
  }
}
"""
    scene.write(scene.desktop, text)
    (one,) = rewrite(scene.plan(), [OURS], shim_args, lambda _: (OURS, ["shim", "r"])).files
    assert revert(one.content, "json", one.records).decode() == text
    edited = one.content.replace(b"{\n", b'{\n  "n": 1,\n', 1)
    expected = text.replace("{\n", '{\n  "n": 1,\n', 1)
    assert revert(edited, "json", one.records).decode() == expected


def test_a_remote_entry_that_was_taken_over_stays_taken_over(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"r": {"url": "https://r"}}})
    (one,) = rewrite(scene.plan(), [OURS], shim_args, lambda _: (OURS, ["shim", "r"])).files
    theirs = server("node")
    result = _after(one, lambda values: values["mcpServers"].update(r=theirs))
    assert result == {"mcpServers": {"r": theirs}}


def test_a_remote_toml_entry_comes_back_with_its_tables(scene: Scene) -> None:
    scene.agent = "codex"
    text = '[mcp_servers.r]\nurl = "https://r"\n\n[mcp_servers.r.http_headers]\nX = "y"\n'
    scene.write(scene.home / ".codex/config.toml", text)
    (one,) = rewrite(scene.plan(), [OURS], shim_args, lambda _: (OURS, ["shim", "r"])).files
    assert tomllib.loads(one.content.decode())["mcp_servers"]["r"] == {
        "command": OURS,
        "args": ["shim", "r"],
    }
    result = revert(b"model = 1\n" + one.content, "toml", one.records).decode()
    assert tomllib.loads(result) == {"model": 1, **tomllib.loads(text)}


def test_a_server_that_is_named_like_a_key_is_found(scene: Scene) -> None:
    servers = {"command": server("npx"), "args": server("y"), "mcpServers": server("z")}
    one = _rewritten(scene, {"mcpServers": servers})
    assert len(one.records) == 3
    result = _after(one, lambda values: values.update(more=1))
    assert result == {"mcpServers": servers, "more": 1}


def test_a_text_without_our_entries_is_returned_as_it_is(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})
    for text in (b"[]", b'{"mcpServers": {}} // c', b'{"command": "x"}'):
        assert revert(text, "json", one.records) == text


def test_a_text_that_cannot_be_read_is_left(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})
    with pytest.raises(ConfigError, match="not valid JSON"):
        revert(one.content[:-5], "json", one.records)


def test_entries_of_a_lost_journal_are_recognised(scene: Scene) -> None:
    one = _rewritten(scene, {"mcpServers": SERVERS})
    records = find_wrapped_entries(one.content, "json")
    assert [record.server_id for record in records] == ["a", "b"]
    result = json.loads(revert(one.content, "json", records))
    assert result == {"mcpServers": {**SERVERS, "b": {"command": "y", "args": []}}}


def test_an_array_of_a_lost_journal_is_recognised() -> None:
    content = json.dumps({"mcp": {"a": {"command": [*head("a"), "npx", "x"]}}}).encode()
    result = revert(content, "json", find_wrapped_entries(content, "json"))
    assert json.loads(result) == {"mcp": {"a": {"command": ["npx", "x"]}}}


def test_a_shim_that_the_user_wrote_is_no_wraps() -> None:
    own = server("thoughtgate", "shim", "--server-id", "a", "--", "npx")
    open_ended = server("thoughtgate", "shim", "--run", "k", "--")
    content = json.dumps({"mcpServers": {"a": own, "b": open_ended}}).encode()
    assert find_wrapped_entries(content, "json") == ()


# What generated files are made of.
WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=6)
VARIABLE = st.sampled_from(["HOME", "PYTHONPATH", "LD_PRELOAD", "A=B", "THOUGHTGATE_X"])
ENTRY = st.fixed_dictionaries(
    {"command": WORD.filter(bool)},
    optional={
        "args": st.lists(WORD, max_size=3),
        "env": st.dictionaries(WORD | VARIABLE, WORD, max_size=3),
        "timeout": st.integers(0, 99),
    },
)
FILE = st.fixed_dictionaries(
    {"mcpServers": st.dictionaries(WORD, ENTRY, min_size=1, max_size=3)},
    optional={"theme": WORD, "list": st.lists(st.integers(), max_size=3)},
)
DECORATION = st.sampled_from(["", " ", "\n  ", "\r\n\t", " // c\n", " /* c */ "])


def _render(value: Any, draw: Callable[[], str], *, commented: bool) -> str:
    """Return a value as JSONC with drawn layout."""
    gap = draw if commented else (lambda: "")
    if isinstance(value, dict):
        inner = [
            f"{gap()}{json.dumps(k)}:{gap()}{_render(v, draw, commented=commented)}"
            for k, v in value.items()
        ]
        comma = "," if commented and inner and draw() else ""
        return "{" + ",".join(inner) + comma + gap() + "}"
    if isinstance(value, list):
        return (
            "["
            + ",".join(gap() + _render(v, draw, commented=commented) for v in value)
            + gap()
            + "]"
        )
    return json.dumps(value)


def _round_trip(
    content: bytes, form: Format, edit: Callable[[bytes], bytes]
) -> tuple[bytes, bytes]:
    """Return what a rewritten, edited and reverted file holds, and the rewritten text."""
    with tempfile.TemporaryDirectory() as top:
        scene = Scene(Path(top), agent="custom")
        scene.config_path = scene.write(Path(top) / f"mcp.{form}", content)
        plan = scene.plan()
        plan.require()
        (one,) = put_behind_gate(plan).files
        return revert(edit(one.content), form, one.records), one.content


@settings(max_examples=100, deadline=None)
@given(FILE, st.sampled_from([None, 1, 2, "\t"]), st.booleans(), st.sampled_from(["", "\n"]))
def test_any_json_file_comes_back_byte_for_byte(
    values: Any, indent: Any, ascii_only: bool, end: str
) -> None:
    content = (json.dumps(values, indent=indent, ensure_ascii=ascii_only) + end).encode()
    reverted, written = _round_trip(content, "json", lambda text: text)
    assert reverted == content != written


@settings(max_examples=100, deadline=None)
@given(FILE, st.data())
def test_any_jsonc_file_comes_back_byte_for_byte(values: Any, data: st.DataObject) -> None:
    content = _render(values, lambda: data.draw(DECORATION), commented=True).encode()
    reverted, written = _round_trip(content, "json", lambda text: text)
    assert reverted == content != written


@settings(max_examples=100, deadline=None)
@given(FILE, st.booleans())
def test_any_toml_file_comes_back_byte_for_byte(values: Any, inline: bool) -> None:
    servers = values.pop("mcpServers")
    document = tomlkit.document()
    document.update(values)
    document.add(tomlkit.comment("servers"))
    table = tomlkit.table()
    for name, entry in servers.items():
        if inline:
            one = tomlkit.inline_table()
            one.update(entry)
            table[name] = one
        else:
            table[name] = entry
    document["mcp_servers"] = table
    content = tomlkit.dumps(document).encode()
    reverted, written = _round_trip(content, "toml", lambda text: text)
    assert reverted == content != written


@settings(max_examples=100, deadline=None)
@given(FILE, ENTRY, st.data())
def test_any_foreign_edit_of_any_file_is_kept(values: Any, added: Any, data: st.DataObject) -> None:
    name = data.draw(WORD.filter(lambda word: word not in values["mcpServers"]))
    gone = data.draw(st.sampled_from([None, *values["mcpServers"]]))
    expected = json.loads(json.dumps(values))

    def edit(target: Any) -> None:
        target["mcpServers"][name] = added
        target["mcpServers"].pop(gone, None)
        target["machineID"] = "made-up"

    def edit_text(content: bytes) -> bytes:
        target = json.loads(content)
        edit(target)
        return json.dumps(target, indent=2).encode()

    edit(expected)
    reverted, _ = _round_trip(json.dumps(values).encode(), "json", edit_text)
    assert json.loads(reverted) == expected


@settings(max_examples=60, deadline=None)
@given(FILE)
def test_a_foreign_edit_of_any_toml_file_is_kept(values: Any) -> None:
    content = tomlkit.dumps({"mcp_servers": values["mcpServers"]}).encode()
    extra = b'\n# theirs\n[mcp_servers."added\\tone"]\ncommand = "z" # kept\n'
    reverted, _ = _round_trip(content, "toml", lambda text: text + extra)
    assert reverted == content + extra
