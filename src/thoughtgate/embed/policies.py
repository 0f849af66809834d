"""Loading a policy and judging calls with it, without a server, a record or a running gate."""

import os
from collections.abc import Mapping
from pathlib import Path

from thoughtgate.core.judge import Judge
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded, load_configuration, load_text
from thoughtgate.policy.call import Call, Verdict
from thoughtgate.policy.policy import Policy


def load_policy(
    path: str | os.PathLike[str] | None = None,
    *,
    text: str | None = None,
    environ: Mapping[str, str] | None = None,
    profile: str | None = None,
) -> Policy:
    """Load the policy from a config file or from a config's text.

    Without either, the config is searched for where the commands look for it, and the built-in
    starter policy is used if there is none. ``environ`` replaces the process's environment, and
    ``profile`` the config's profile. Treat the result as opaque: pass it to ``judge``.

    Example:
        >>> policy = load_policy("thoughtgate.yaml")
        >>> policy = load_policy(text="{schema: 1, default: deny}")

    Raises:
        ConfigError: the config is missing or wrong; ``problems`` lists everything that is.
        UsageError: there is no such profile.
    """
    return load_config(path, text, os.environ if environ is None else environ, profile).policy


def load_config(
    path: str | os.PathLike[str] | None,
    text: str | None,
    environ: Mapping[str, str],
    profile: str | None,
) -> Loaded:
    """Load a config from a file or a text.

    Raises:
        ConfigError: the config is missing or wrong.
        ValueError: both a file and a text are given.
    """
    directory = str(Path.cwd())
    if text is None:
        flag = None if path is None else os.fspath(path)
        return load_configuration(flag, environ, directory, profile=profile)
    if path is not None:
        raise ValueError("give the config as a file or as a text, not both")
    return load_text(text, environ, directory, profile=profile)


def judge(policy: Policy, call: Call, *, at: float | None = None) -> Verdict:
    """Return the verdict on a call: what the gate would do with the call, by which rule and why.

    Nothing is recorded, nobody is asked and nothing is counted: limits are checked as for the
    first call of a run. ``at`` is the time in seconds since the epoch, by default now.

    Example:
        >>> rules = 'rules: [{tool: "read_*", action: forward}]'
        >>> policy = load_policy(text=f"{{schema: 1, default: deny, {rules}}}")
        >>> verdict = judge(policy, Call("files", "tool", "read_file", {"path": "/tmp/a"}))
        >>> verdict.action, verdict.gate, verdict.rule
        ('forward', 'rules', 'rules[0]')
        >>> judge(policy, Call("files", "tool", "delete_file", {})).reason
        'no rule matches'
    """
    return Judge(policy, "").predict(call, now() if at is None else at)
