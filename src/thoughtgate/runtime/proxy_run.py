"""Running a planned proxy: in this process, or in several that share a port."""

from collections.abc import Callable

from thoughtgate.runtime.proxy import ProxyPlan, run_http


def run_proxy(plan: ProxyPlan, announce: Callable[[str], None]) -> int:
    """Run until a signal or the end of the agent; return the exit code.

    Raises:
        ThoughtGateError: it cannot be run.
    """
    run_http(plan, announce)
    return 0
