"""What a wrap writes into an agent's config is the same from run to run and holds no secret."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.process.own_command import own_command
from thoughtgate.wrap.rewritten_entry import is_our_entry, make_rewrite, run_key
from thoughtgate.wrap.server_variables import ServerVariables


def _scene(tmp_path: Path, entry: dict[str, Any] | None = None) -> Scene:
    scene = Scene(tmp_path)
    scene.write(scene.desktop, {"mcpServers": {"files": entry or server("server", "--x")}})
    return scene


def test_a_key_depends_on_agent_place_and_file_and_on_nothing_else(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    key = run_key(scene.plan())

    assert key == run_key(scene.plan())
    assert key.isalnum()
    scene.config_path = scene.desktop
    assert run_key(scene.plan()) != key


def _words(scene: Scene, environ: dict[str, str]) -> list[str]:
    plan = scene.plan()
    (record,) = make_rewrite(plan, environ, ServerVariables(plan, environ)).files[0].records
    own = own_command()
    assert list(record.head[: len(own)]) == own
    return list(record.head[len(own) :])


@pytest.mark.requirement("S000-F-006")
def test_an_entry_is_told_its_id_and_the_full_path_of_its_run(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    key = run_key(scene.plan())

    for environ in ({"THOUGHTGATE_STATE_DIR": "/moved"}, {"XDG_STATE_HOME": "/moved"}, {}):
        *words, run, end = _words(scene, environ)
        assert words == ["shim", "--server-id", "files", "--run"]
        assert run.startswith("/moved/" if environ else "/")
        assert run.endswith(f"/runs/{key}.json")
        assert end == "--"


def test_an_entry_with_variables_or_a_shim_of_its_own_says_so_in_words_that_stay(
    tmp_path: Path,
) -> None:
    entry = server("thoughtgate", "shim", "--", "server", env={"PYTHONPATH": "secret"})
    scene = _scene(tmp_path, entry)

    words = _words(scene, {})

    assert words[5:8] == ["--skip", "3", "--entry"]
    assert len(words[8]) == 16
    assert words == _words(scene, {})
    assert "secret" not in " ".join(words)


@pytest.mark.promise("repository-shim")
def test_only_our_own_program_with_a_run_of_this_directory_is_ours(tmp_path: Path) -> None:
    scene, environ = _scene(tmp_path), {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    words = [*own_command(), *_words(scene, environ), "server"]
    assert is_our_entry(words, environ)

    run = words.index("--run") + 1
    assert not is_our_entry(["/repo/thoughtgate", *words[1:]], environ)
    assert not is_our_entry(["thoughtgate", "shim", "--run", words[run], "--", "x"], environ)
    assert not is_our_entry([*words[:run], "/repo/run.json", *words[run + 1 :]], environ)
    more = [*words[: run + 1], "--governance-endpoint", "http://x", *words[run + 1 :]]
    assert not is_our_entry(more, environ)
    assert not is_our_entry(words[: words.index("--")], environ)
    assert not is_our_entry([], environ)
