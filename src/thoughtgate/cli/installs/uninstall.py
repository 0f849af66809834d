"""``thoughtgate uninstall``: undo ``thoughtgate install``."""

import os
from collections.abc import Sequence
from pathlib import Path

from thoughtgate.agents.installs.installed_configs import InstalledConfigs
from thoughtgate.agents.journal import Journal
from thoughtgate.cli.installs.install import AgentsArgument, ConfigPathOption, agent_types
from thoughtgate.cli.options import JsonOption, command_app, examples
from thoughtgate.cli.unwrap import report_restored
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.wrap.installation import uninstall as restore

app = command_app()

_EXAMPLES = examples(
    "thoughtgate uninstall",
    "thoughtgate uninstall cursor",
    "thoughtgate uninstall --config-path ~/.cursor/mcp.json",
)


@app.command(epilog=_EXAMPLES)
def uninstall(
    *,
    agents: AgentsArgument = None,
    config_path: ConfigPathOption = None,
    json_: JsonOption = False,
) -> None:
    """Remove the shims that thoughtgate install put into agents' configs.

    A file that has not changed since gets its exact text back; in any other, only the gate's own
    entries are reverted. Without AGENT, this covers every installed file, of all projects.
    """
    chosen = list(agent_types(agents))
    state = Path(state_directory(os.environ))
    with InstalledConfigs.changing(state) as configs:
        journals = [
            one for one in configs.journals.values() if _is_selected(one, chosen, config_path)
        ]
        outcomes = restore(configs, journals, chosen, str(state))
        unreadable = configs.problems
    nothing = "" if outcomes else "no such agent config is installed"
    report_restored(outcomes, unreadable, nothing, as_json=json_)


def _is_selected(journal: Journal, agents: Sequence[str], config_path: Path | None) -> bool:
    if agents and not set(agents) & set(journal.agent_type.split(",")):
        return False
    if config_path is None:
        return True
    return os.path.realpath(config_path) == str(journal.files[0].real)
