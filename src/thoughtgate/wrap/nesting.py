"""A wrap that a wrapped agent starts for another agent, which is governed in a run of its own.

It was started by an agent, so it must not loosen anything: it uses the state directory, the config
and the profile of the outer run, and prints no link to a console. Approvals are answered as for the
outer run, and never by a descendant of either agent.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thoughtgate.errors import UsageError
from thoughtgate.gate.approvals.started_by_agent import MARKS, runs_around
from thoughtgate.gate.config_files import Loaded
from thoughtgate.policy.call import PRODUCTION


@dataclass(frozen=True, slots=True)
class OuterRun:
    """A running wrap whose agent started this process."""

    pid: int
    state: str
    config: str
    """The path of its config; empty for the built-in policy."""
    profile: str

    @property
    def policy(self) -> str:
        """Its policy, in words."""
        return f"{self.config or 'the built-in policy'}, {self.profile}"


def find_outer_runs(environ: Mapping[str, str], state: str) -> tuple[OuterRun, ...]:
    """Return the wraps around this process, nearest first.

    Raises:
        UsageError: the environment is that of a wrapped agent, but its wrap cannot be seen.
    """
    found = tuple(
        OuterRun(
            int(gate["pid"]),
            place,
            str(gate.get("config") or ""),
            str(gate.get("profile") or PRODUCTION),
        )
        for place, gate in runs_around(state)
        if gate.get("kind") == "wrap"
    )
    mark = next((name for name in MARKS if environ.get(name)), "")
    if mark and not found:
        raise UsageError(
            f"{mark} is set, but the wrap that set it cannot be found among the processes that "
            "started this one; run 'thoughtgate wrap' in a terminal outside the agent"
        )
    return found


def require_policy_of(outer: Sequence[OuterRun], loaded: Loaded, state: str) -> None:
    """Refuse a policy that may be looser than that of the outer runs.

    Raises:
        UsageError: the state directory, the config or the profile is another one.
    """
    for run in outer:
        differs = ""
        if os.path.realpath(state) != os.path.realpath(run.state):
            differs = f"the state directory {state}"
        elif _real(loaded.path or "") != _real(run.config):
            differs = f"the config {loaded.path or 'that is built in'}"
        # An outer run that only reports is not weakened by one that enforces.
        elif run.profile == PRODUCTION != loaded.policy.profile:
            differs = f"the profile {loaded.policy.profile}"
        if differs:
            raise UsageError(
                f"a wrapped agent (process {run.pid}) started this wrap, which must have the same "
                f"policy ({run.policy}) and not {differs}; omit the option or variable, or run it "
                "in a terminal outside the agent"
            )


def _real(path: str) -> str:
    return os.path.realpath(path) if path else ""
