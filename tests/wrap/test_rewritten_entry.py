"""What a wrap writes into an agent's config is the same from run to run and holds no secret."""

import os
from pathlib import Path

import pytest
from tests.support.agent_files import Scene

from thoughtgate.wrap.rewritten_entry import make_rewrite, run_key, shim_command


def _scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    scene.write(scene.desktop, {"mcpServers": {"files": {"command": "server", "args": ["--x"]}}})
    return scene


def test_a_key_depends_on_agent_place_and_file_and_on_nothing_else(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    key = run_key(scene.plan())

    assert key == run_key(scene.plan())
    assert key.isalnum()
    scene.config_path = scene.desktop
    assert run_key(scene.plan()) != key


def test_our_command_is_an_absolute_path_that_can_be_run() -> None:
    command = shim_command()

    assert Path(command[0]).is_absolute()
    assert os.access(command[0], os.X_OK)


def _args(scene: Scene, environ: dict[str, str]) -> list[str]:
    (record,) = make_rewrite(scene.plan(), environ).files[0].records
    return list(record.head)


@pytest.mark.requirement("S000-F-006")
def test_an_entry_is_told_its_id_and_its_run(tmp_path: Path) -> None:
    scene = _scene(tmp_path)

    words = _args(scene, {"HOME": str(scene.home)})

    own = len(shim_command())
    assert words[own:] == ["shim", "--server-id", "files", "--run", run_key(scene.plan()), "--"]


def test_a_state_directory_that_was_moved_is_named_in_full(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    key = run_key(scene.plan())

    for environ in ({"THOUGHTGATE_STATE_DIR": "/moved"}, {"XDG_STATE_HOME": "/moved"}):
        run = _args(scene, environ)[-2]
        assert run.startswith("/moved/")
        assert run.endswith(f"/runs/{key}.json")
