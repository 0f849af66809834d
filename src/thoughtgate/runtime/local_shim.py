"""A shim that judges by itself: its config, its record, its desk.

Loaded only then; a shim that asks a governance service never pays for this.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from thoughtgate.config.settings import Settings
from thoughtgate.core.clerk import ORPHAN_AFTER_S, Setup
from thoughtgate.core.record import CALL_DECISION, FRAME_REFUSED, Record
from thoughtgate.errors import ConfigError, Problem, UsageError
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.runtime.authority import Authority
from thoughtgate.runtime.clock import now
from thoughtgate.runtime.configuration import load_configuration
from thoughtgate.runtime.governing import open_governor, record_place
from thoughtgate.runtime.identity import principal_of
from thoughtgate.runtime.local_authority import LocalAuthority
from thoughtgate.runtime.memory import settle_memory
from thoughtgate.runtime.policy_watch import watch_policy
from thoughtgate.runtime.shim import complain
from thoughtgate.runtime.state import ensure_directory, state_directory
from thoughtgate.runtime.voice import json_log, voice


class ShimOptions(Protocol):
    """What this module reads of the command line."""

    @property
    def config(self) -> str:
        """The config file; empty for the usual places."""

    @property
    def profile(self) -> str:
        """The profile; empty for the config's."""

    @property
    def audit(self) -> str:
        """Where the record goes; empty for the config's choice."""


def govern_locally(
    server: str, options: ShimOptions, environ: dict[str, str]
) -> tuple[Authority, Setup, Iterable[str]]:
    """Load the config and open the run; also return the variables that the server must not see.

    Raises:
        ConfigError: the config is wrong; nothing was started.
        UsageError: the record would go to stdout.
        RecordError: the record cannot be written.
    """
    loaded = load_configuration(
        options.config or None, environ, str(Path.cwd()), profile=options.profile or None
    )
    say = voice("shim", loaded, level="warn")
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    state = ensure_directory(state_directory(environ))
    refuse_stdout(record_place(loaded, state, options.audit), options.audit)
    observe = json_log("shim", loaded) or _tell
    governor = open_governor(loaded, environ, state, audit=options.audit, observe=observe)
    watch_policy(governor, loaded, environ, say)
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
    principal = principal_of(governor.run)
    settle_memory()
    return LocalAuthority(governor, server, session, principal), setup, secret_names(settings)


def refuse_stdout(place: str, told: str) -> None:
    """Keep the record out of the stream that carries MCP.

    Raises:
        ConfigError: the config sends it there.
        UsageError: the command line does.
    """
    if not _is_stdout(place):
        return
    text = "stdout carries MCP; the record goes to stderr or a file"
    if told:
        raise UsageError(f"--audit {told}: {text}")
    raise ConfigError([Problem("audit.sink", text)])


def _is_stdout(place: str) -> bool:
    if place == "stdout":
        return True
    try:
        status = Path(place).stat()
    except OSError:
        return False
    # A device, the null device above all, does not mix what is written to it.
    return not stat.S_ISCHR(status.st_mode) and os.path.samestat(status, os.fstat(1))


def _tell(record: Record) -> None:
    """Say on stderr what the production profile would have refused."""
    if record.type == CALL_DECISION and "outcome" in record.body["decision"]:
        decision, call = record.body["decision"], record.body["call"]
        kind = decision["explain"]["reason_code"].lower()
        complain(f"{decision['outcome']}: {call['tool_name']!r}, {decision['gate']} gate, {kind}")
    elif record.type == FRAME_REFUSED and "outcome" in record.body["frame"]:
        frame = record.body["frame"]
        complain(f"{frame['outcome']}: a frame {frame['direction']}, {frame['check']}")


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
