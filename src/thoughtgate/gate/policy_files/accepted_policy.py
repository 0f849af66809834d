"""Compares the config with the last accepted one, when a gate starts that an agent may start.

An agent that can edit the config could also start the gate again, and must not be able to loosen
the policy between two runs. The first use of a file accepts it; operators accept by starting.
"""

import shlex
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from thoughtgate.config.locate import candidates
from thoughtgate.config.settings import Settings
from thoughtgate.errors import ConfigError, Problem
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded, load_kept
from thoughtgate.gate.policy_files.agent_started import config_directory
from thoughtgate.gate.policy_files.sources import PROJECT
from thoughtgate.gate.policy_files.trusted_files import list_trusted, place_of
from thoughtgate.gate.reload import AUTO, BY_CONFIG, NOBODY, may_continue
from thoughtgate.policy.call import DEVELOPMENT
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.policies import AcceptedPolicy, PolicyStore

FIRST_USE: Final = "nobody: first use"


def keep_accepted(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    say: Callable[[str], None],
    *,
    profile: str | None = None,
    is_started_by_agent: Callable[[Settings], bool] = lambda _: True,
) -> Loaded:
    """Return the config to start with: this one, or the one accepted before it.

    If the files changed since they were last accepted and may loosen the policy, the accepted
    config is returned with this one as ``proposed``; a ``Reloader`` asks about it. ``profile`` is
    the one on the command line. ``is_started_by_agent`` tells by the settings whether an agent
    starts the gate; what the accepted config says of it counts as well as what the files say.

    Raises:
        ConfigError: the files changed, and the accepted texts cannot be loaded any more; or the
            accepted file is gone, or another one is used instead of it; or the project's trusted
            file is not the one that was trusted.
        StoreError: the state directory cannot be used.
    """
    if any(one.role == PROJECT for one in loaded.sources[:1]):
        # Trust in a project's file covers its bytes: it is an acceptance of its own.
        return loaded
    if is_started_by_agent(loaded.settings):
        _refuse_changed_trust(loaded, state)
    with closing(open_database(Path(state))) as database:
        policies = PolicyStore(database)
        for path in replaced_files(loaded, environ, policies):
            message = (
                f"is gone, or {loaded.path or 'the built-in policy'} is used instead of it, but it"
                " is the policy that was accepted; restore it, or run: thoughtgate policy accept"
            )
            raise ConfigError([Problem("", message, path)])
        if loaded.path is None:
            return loaded
        file = loaded.own_file
        kept = policies.accepted(file.path)
        if kept is None and is_started_by_agent(loaded.settings):
            policies.accept_first(file, FIRST_USE, now())
        if kept is None or kept.file.digest == file.digest:
            return loaded
        old = load_accepted(kept, loaded, environ, profile=profile)
        if not _must_compare(old, loaded, is_started_by_agent):
            return loaded
        # Imported here: most starts see no change, and a shim must stay small.
        from thoughtgate.gate.policy_files.policy_change import find_change

        change = find_change(old, loaded, environ, now())
        if not change.needs_acceptance or old.settings.reload == AUTO:
            by = BY_CONFIG if change.needs_acceptance else NOBODY
            if may_continue(loaded, environ):
                policies.replace(kept.file.digest, file, by, now())
            return loaded
    say(
        f"warning: {loaded.path} changed since it was last accepted, and {change.words};"
        " until it is accepted, the stricter verdict of both counts"
        f" (accept it with: thoughtgate policy accept {loaded.path})"
    )
    return replace(old, warnings=loaded.warnings, proposed=loaded)


def _refuse_changed_trust(loaded: Loaded, state: str) -> None:
    """Refuse a project whose trusted file was edited or removed: it may have been the stricter one.

    Raises:
        ConfigError: there was such a file in the working directory.
    """
    if loaded.origin is None or any(one.named_by for one in loaded.sources):
        return
    trusted = list_trusted(state)
    problems = [
        Problem(
            "",
            "was changed or removed after you trusted it; restore it, or run: thoughtgate trust, or:"
            f" thoughtgate trust --remove {shlex.quote(path)}",
            path,
        )
        for path in map(place_of, candidates(loaded.origin.cwd))
        if path in trusted
    ]
    if problems:
        raise ConfigError(problems)


def replaced_files(loaded: Loaded, environ: Mapping[str, str], policies: PolicyStore) -> list[str]:
    """Return accepted files of the user's config directory that are not the ones in use."""
    origin = loaded.origin
    if origin is None or any(one.named_by for one in loaded.sources):
        return []
    home = Path(origin.config_home or config_directory(environ), "thoughtgate")
    others = [path for path in candidates(str(home)) if path != loaded.own_file.path]
    return [path for path in others if policies.accepted(path) is not None]


def _must_compare(
    old: Loaded, new: Loaded, is_started_by_agent: Callable[[Settings], bool]
) -> bool:
    if old.policy.profile == DEVELOPMENT:
        # Nothing was enforced, and a policy that only observed must not limit a later one.
        return False
    return any(is_started_by_agent(one.settings) for one in (old, new))


def load_accepted(
    kept: AcceptedPolicy,
    loaded: Loaded,
    environ: Mapping[str, str],
    *,
    profile: str | None = None,
) -> Loaded:
    """Load the config that was accepted before another one, from its texts.

    Raises:
        ConfigError: the texts are no valid config any more.
    """
    try:
        return load_kept(loaded, kept.file.texts, environ, profile=profile)
    except ConfigError as error:
        why = "; ".join(problem.message for problem in error.problems)
        message = (
            "changed since it was last accepted, and the accepted version cannot be loaded any"
            f" more ({why}); accept the file with: thoughtgate policy accept {loaded.path}"
        )
        raise ConfigError([Problem("", message, kept.file.path)]) from error
