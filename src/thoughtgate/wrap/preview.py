"""The output of ``wrap --dry-run``. Writes nothing and starts nothing."""

from collections.abc import Mapping

from thoughtgate.agents.catalog import Way
from thoughtgate.agents.diff import unified_diff
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.injection.injection import governed
from thoughtgate.agents.injection.preview import preview
from thoughtgate.agents.injection.ways import inject
from thoughtgate.wrap.injected_files import base_key, folder_of
from thoughtgate.wrap.remote_servers import Remotes
from thoughtgate.wrap.rewritten_entry import make_rewrite, run_key
from thoughtgate.wrap.run import describe_exceptions
from thoughtgate.wrap.server_variables import ServerVariables
from thoughtgate.wrap.strategy import injected, rewritten


def preview_run(
    plan: Plan, way: Way, environ: Mapping[str, str], *, remote: bool
) -> tuple[str, list[str]]:
    """Return what would change, and a line for each server that would not be governed.

    Raises:
        ConfigError: the agent's servers cannot be governed.
    """
    plan.require()
    variables = ServerVariables(plan, plan.search.env)
    key = base_key(plan) if way == "inject" else run_key(plan)
    remotes = Remotes(plan, environ) if remote else None
    done = make_rewrite(plan, environ, variables, remotes, key)
    if way == "rewrite":
        return unified_diff(done.files), describe_exceptions(rewritten(plan, done), variables)
    injection = inject(governed(plan, done, plan.search.argv, folder_of(key, environ)))
    return preview(injection), describe_exceptions(injected(plan, injection), variables)
