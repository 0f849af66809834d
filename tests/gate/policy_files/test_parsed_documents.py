"""Parsed configs in the state directory: quicker, and never something else than the text says."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server, shim
from tests.support.frames import call
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for
from tests.support.wraps import kind_of, text_of

from thoughtgate.errors import ConfigError
from thoughtgate.gate.config_files import load_agent_gate
from thoughtgate.gate.policy_files import parsed_documents
from thoughtgate.gate.policy_files.parsed_documents import DIRECTORY, ParsedDocuments

DENY = "schema: 1\ndefault: deny\nrules:\n  - {tool: add, action: forward}\n"


def _kept(state: Path) -> list[Path]:
    return sorted((state / DIRECTORY).iterdir())


def test_a_text_is_parsed_once(tmp_path: Path) -> None:
    first, second = ParsedDocuments(str(tmp_path)), ParsedDocuments(str(tmp_path))
    parsed = first.parse(DENY, file="c.yaml")
    again = second.parse(DENY, file="c.yaml")

    assert again.data == parsed.data
    assert (first.has_skipped, second.has_skipped) == (False, True)
    (kept,) = _kept(tmp_path)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "text",
    ["a: .5\nb: 0x1f\nc: 010\nd: ~\ne: yes\nf: 123456789012345678901234567890\n", 'a: "\\u2028"\n'],
)
def test_what_is_kept_reads_as_the_text_does(tmp_path: Path, text: str) -> None:
    parsed = ParsedDocuments(str(tmp_path)).parse(text, file="c.yaml").data
    kept = ParsedDocuments(str(tmp_path)).parse(text, file="c.yaml").data

    assert repr(kept) == repr(parsed)


def test_another_text_format_or_version_has_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "a = 1\n"
    ParsedDocuments(str(tmp_path)).parse(text, file="c.toml")
    ParsedDocuments(str(tmp_path)).parse("a: 1\n", file="c.yaml")
    monkeypatch.setattr(parsed_documents, "__version__", "other")
    ParsedDocuments(str(tmp_path)).parse(text, file="c.toml")

    assert len(_kept(tmp_path)) == 3


def test_without_a_state_directory_or_with_json_nothing_is_kept(tmp_path: Path) -> None:
    for documents, file in (
        (ParsedDocuments(), "c.yaml"),
        (ParsedDocuments(str(tmp_path / "none")), "c.yaml"),
        (ParsedDocuments(str(tmp_path)), "c.json"),
    ):
        assert documents.parse('{"a": 1}', file=file).data == {"a": 1}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", ["partial", "other text", "not data", "readable", "link", "deep"])
def test_a_file_that_is_wrong_is_ignored(tmp_path: Path, harm: str) -> None:
    loose = "schema: 1\ndefault: forward\n"
    ParsedDocuments(str(tmp_path)).parse(loose, file="c.yaml")
    (forged,) = _kept(tmp_path)
    ParsedDocuments(str(tmp_path)).parse(DENY, file="c.yaml")
    (kept,) = (path for path in _kept(tmp_path) if path != forged)
    text = kept.read_text("utf-8")
    if harm == "link":
        (tmp_path / "elsewhere").write_text(text.replace("deny", "forward"), "utf-8")
        (tmp_path / "elsewhere").chmod(0o600)
        kept.unlink()
        kept.symlink_to(tmp_path / "elsewhere")
    elif harm == "readable":
        kept.write_text(text.replace("deny", "forward"), "utf-8")
        kept.chmod(0o644)
    else:
        wrong = {
            "partial": text[:-9],
            "other text": forged.read_text("utf-8"),
            "not data": json.dumps({"key": kept.stem, "data": ["forward"]}),
            "deep": "[" * 100_000,
        }
        kept.write_text(wrong[harm], "utf-8")

    found = ParsedDocuments(str(tmp_path)).parse(DENY, file="c.yaml")

    assert found.data["default"] == "deny"
    assert ParsedDocuments(str(tmp_path)).parse(DENY, file="c.yaml").data == found.data
    assert not kept.is_symlink()


def test_the_number_of_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_documents, "MAX_FILES", 3)
    for number in range(9):
        ParsedDocuments(str(tmp_path)).parse(f"a: {number}\n", file="c.yaml")

    assert len(_kept(tmp_path)) == 3


def test_a_problem_is_named_with_its_line_also_the_second_time(tmp_path: Path) -> None:
    config, state = tmp_path / "c.yaml", tmp_path / "state"
    state.mkdir(mode=0o700)
    config.write_text("schema: 1\n\ndefault: sometimes\n", "utf-8")
    said = []
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            load_agent_gate(str(config), {}, str(tmp_path), state_dir=str(state))
        said.append(str(caught.value))

    assert _kept(state)
    assert said[0] == said[1]
    assert f"{config}:3" in said[0]


def test_what_variables_decide_is_looked_at_each_time(tmp_path: Path) -> None:
    config, state = tmp_path / "c.yaml", tmp_path / "state"
    state.mkdir(mode=0o700)
    config.write_text("schema: 1\ndefault: ${WHAT:-deny}\n", "utf-8")
    for _ in range(2):
        load_agent_gate(str(config), {}, str(tmp_path), state_dir=str(state))

    with pytest.raises(ConfigError, match="refers to the variable WHAT") as caught:
        load_agent_gate(str(config), {"WHAT": "forward"}, str(tmp_path), state_dir=str(state))
    assert f"{config}:2" in str(caught.value)


def _refusal(answer: dict[str, Any]) -> dict[str, Any] | None:
    return answer if "error" in answer else None


def test_a_shim_starts_without_the_parser_and_follows_a_changed_file(tmp_path: Path) -> None:
    config, state = tmp_path / "c.yaml", tmp_path / "state"
    config.write_text("schema: 1\ndefault: forward\n", "utf-8")
    words = shim(sample_server(), "-c", str(config), "--state-dir", str(state))
    for _ in range(2):
        with StdioPeer(words) as peer:
            assert text_of(peer.ask(call(1, "echo", {"text": "x"}))) == "x"
            peer.finish()
    modules = subprocess.run(
        [sys.executable, "-X", "importtime", "-I", "-m", "thoughtgate", *words[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stderr
    assert "thoughtgate.shim.standalone" in modules
    assert not [name for name in ("ruamel", "pydantic", "cedarpy") if name in modules]

    with StdioPeer(words) as peer:
        assert text_of(peer.ask(call(1, "echo", {"text": "x"}))) == "x"
        new = tmp_path / "new.yaml"
        new.write_text(DENY, "utf-8")
        new.replace(config)
        idents = itertools.count(2)
        answer = wait_for(
            lambda: _refusal(peer.ask(call(next(idents), "echo", {"text": "x"}))),
            what="the changed policy",
        )
        assert kind_of(answer) == "governance_denied"
        peer.finish()
