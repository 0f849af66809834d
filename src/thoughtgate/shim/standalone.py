"""Standalone shim: judges in its own process, with its own config, record and approval queue.

Imported only in that case, so that a shim that uses a governance service stays small.
"""

import gc
from collections.abc import Iterable, Sequence
from pathlib import Path

from thoughtgate.config.secrets import secret_names
from thoughtgate.core.session_replies import ORPHAN_AFTER_S, SessionSettings
from thoughtgate.gate.authority import PolledAuthority
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import load_agent_gate
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.open_governor import open_governor, record_place, refuse_stdout
from thoughtgate.gate.operator_log import operator_log, operator_messages
from thoughtgate.gate.policy_files.accepted_policy import keep_accepted
from thoughtgate.gate.reload import watch_config
from thoughtgate.gate.run_identity import principal_of
from thoughtgate.gate.running_gates import describe_governed
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.process.ancestry import find_agent
from thoughtgate.process.memory import settle_memory


def govern_locally(
    server: str,
    command: Sequence[str],
    environ: dict[str, str],
    *,
    config: str,
    state_dir: str,
    profile: str,
    audit: str,
) -> tuple[PolledAuthority, SessionSettings, str, Iterable[str]]:
    """Load the config and start the run; also return the principal and the variables to withhold.

    ``command`` is the server's command line. The keyword arguments are the shim's options, empty for
    their defaults.

    Raises:
        ConfigError: the config is invalid; nothing was started.
        UsageError: the record would go to stdout, or the state directory is not an absolute path.
        RecordError: the record cannot be written.
    """
    loaded, environ = load_agent_gate(
        config or None,
        environ,
        str(Path.cwd()),
        profile=profile or None,
        state_dir=state_dir,
    )
    say = operator_messages("shim", loaded, level="warn")
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    say(f"policy    {loaded.summary}")
    state = ensure_directory(state_directory(environ))
    loaded = keep_accepted(loaded, environ, state, say, profile=profile or None)
    refuse_stdout(record_place(loaded, state, audit), audit)
    observe = operator_log("shim", loaded)
    governor = open_governor(
        loaded,
        environ,
        state,
        audit=audit,
        observe=observe,
        governed=describe_governed(find_agent()),
    )
    governor.identify(server, command)
    watch_config(governor, loaded, environ, say)
    governor.start(now(), server=server, command="shim")
    session = "1"
    settings = loaded.settings
    listed = settings.servers.get(server)
    setup = SessionSettings(
        server,
        session,
        enforce=loaded.policy.profile == PRODUCTION,
        timeout_s=(listed.timeout_s if listed is not None else 0.0) or ORPHAN_AFTER_S,
        max_held=settings.holds.connection,
    )
    principal = principal_of(governor.run, by_agent=True)
    gc.collect()  # an agent starts one shim per server, so 0.1 MB matters more than 15 ms
    settle_memory()
    return LocalAuthority(governor), setup, principal, secret_names(settings)
