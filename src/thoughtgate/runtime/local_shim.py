"""A shim that judges by itself: its config, its record, its desk.

Loaded only then; a shim that asks a governance service never pays for this.
"""

import os
from collections.abc import Iterable
from typing import Protocol

from thoughtgate.config.settings import Settings
from thoughtgate.core.clerk import ORPHAN_AFTER_S, Setup
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.runtime.authority import Authority
from thoughtgate.runtime.clock import now
from thoughtgate.runtime.configuration import load_configuration
from thoughtgate.runtime.governing import open_governor
from thoughtgate.runtime.local_authority import LocalAuthority
from thoughtgate.runtime.shim import complain
from thoughtgate.runtime.state import ensure_directory, state_directory


class ShimOptions(Protocol):
    """What this module reads of the command line."""

    @property
    def config(self) -> str: ...
    @property
    def profile(self) -> str: ...
    @property
    def audit(self) -> str: ...


def govern_locally(
    server: str, options: ShimOptions, environ: dict[str, str]
) -> tuple[Authority, Setup, Iterable[str]]:
    """Load the config and open the run; also return the variables that the server must not see.

    Raises:
        ConfigError: the config is wrong; nothing was started.
        RecordError: the record cannot be written.
    """
    loaded = load_configuration(
        options.config or None, environ, os.getcwd(), profile=options.profile or None
    )
    for warning in loaded.warnings:
        complain(f"warning: {warning}")
    state = ensure_directory(state_directory(environ))
    governor = open_governor(loaded, environ, state, audit=options.audit)
    governor.start(now(), server=server, command="shim")
    session = "1"
    settings = loaded.settings
    listed = settings.servers.get(server)
    setup = Setup(
        server,
        session,
        enforce=loaded.policy.profile == PRODUCTION,
        timeout_s=(listed.timeout_s if listed is not None else 0.0) or ORPHAN_AFTER_S,
        max_held=settings.holds.connection,
    )
    run = governor.run
    principal = run.principal or run.agent_id
    return LocalAuthority(governor, server, session, principal), setup, secret_names(settings)


def secret_names(settings: Settings) -> frozenset[str]:
    """Return the names of the variables that hold the gate's own secrets."""
    names = {settings.audit.sign_key_env}
    if settings.listen.auth is not None:
        names.add(settings.listen.auth.token_env)
    for server in settings.servers.values():
        if server.auth is not None:
            names.add(server.auth.token_env)
    for workflow in settings.approval.values():
        if workflow.slack is not None:
            names.add(workflow.slack.token_env)
        if workflow.webhook is not None:
            names.add(workflow.webhook.secret_env)
    return frozenset(names - {""})
