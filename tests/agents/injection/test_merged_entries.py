"""What is given to an agent that merges is complete, and holds nothing else."""

from pathlib import Path

from tests.support.agent_files import Scene, head, put_behind_gate

from thoughtgate.agents.injection.injection import governed
from thoughtgate.agents.injection.merged_entries import emptied, is_off, merged_value


def test_layers_are_merged_to_one_command_and_dangerous_variables_are_emptied(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, agent="codex")
    scene.write(
        scene.home / ".codex" / "config.toml",
        '[mcp_servers.a]\ncommand = "run"\nargs = ["x"]\nenv = {LD_PRELOAD = "e", T = "s"}\n',
    )
    scene.write(
        scene.project / ".codex" / "config.toml", '[mcp_servers.a]\nargs = ["y"]\nenabled = false\n'
    )
    plan = scene.plan()
    found = governed(plan, put_behind_gate(plan), ["codex"], tmp_path)
    (stack,) = found.stacks().values()

    user, both = merged_value(found, stack[:1]), merged_value(found, stack)
    assert user is not None
    assert user["args"] == [*head("a")[1:], "run", "x"]
    assert both is not None
    assert both["command"] == head("a")[0]
    assert emptied(stack) == {"env": {"LD_PRELOAD": ""}}
    assert is_off(found, stack)
    assert not is_off(found, stack[:1])
    assert merged_value(found, []) is None
