"""Governed entries are those that a rewrite would write."""

from pathlib import Path

from tests.support.agent_files import Scene, head, put_behind_gate, server

from thoughtgate.agents.injection.injection import governed, place_of


def test_every_entry_has_the_value_that_a_rewrite_would_give_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="claude-code")
    own = server("run", "--x", env={"TOKEN": "t", "PYTHONPATH": "/evil"})
    scene.write(scene.home / ".claude.json", {"mcpServers": {"files": own, "far": {"url": "u"}}})
    plan = scene.plan()

    found = governed(plan, put_behind_gate(plan), ["claude"], tmp_path)

    files, far = plan.entries
    assert found.value_of(files) == {
        "command": head("files")[0],
        "args": [*head("files")[1:], "run", "--x"],
        "env": {"TOKEN": "t", "PYTHONPATH": ""},
    }
    assert found.value_of(far) is None
    assert found.ungoverned(far).reason == "remote server"
    assert found.stacks() == {"files": [files], "far": [far]}
    assert place_of(files) != place_of(far)
