"""ThoughtGate: the gate between AI agents and the MCP tools they use.

The names in ``__all__`` are the public Python API. Each is loaded when it is first used, so that
importing the package costs nothing.

Example:
    >>> import thoughtgate
    >>> policy = thoughtgate.load_policy("thoughtgate.yaml")
    >>> verdict = thoughtgate.judge(policy, thoughtgate.Call("files", "tool", "read_file", {}))
    >>> verdict.action
    'forward'
"""

TYPE_CHECKING = False
"""Not imported from ``typing``, which would slow the start of every shim; type checkers know it."""
if TYPE_CHECKING:
    from thoughtgate.channels.channel import Channel
    from thoughtgate.channels.channel_context import ChannelContext
    from thoughtgate.channels.delivery import DeliveryClient, DeliveryError, RequestGoneError
    from thoughtgate.core.approval import Approval, Vote
    from thoughtgate.embed.open_gate import EmbeddedConnection, EmbeddedGate, open_gate
    from thoughtgate.embed.policies import judge, load_policy
    from thoughtgate.errors import ConfigError, RecordError, StoreError, ThoughtGateError
    from thoughtgate.policy.call import Call, Verdict
    from thoughtgate.policy.policy import Policy
    from thoughtgate.version import __version__

__all__ = [
    "Approval",
    "Call",
    "Channel",
    "ChannelContext",
    "ConfigError",
    "DeliveryClient",
    "DeliveryError",
    "EmbeddedConnection",
    "EmbeddedGate",
    "Policy",
    "RecordError",
    "RequestGoneError",
    "StoreError",
    "ThoughtGateError",
    "Verdict",
    "Vote",
    "__version__",
    "judge",
    "load_policy",
    "open_gate",
]

_MODULES = {
    "Approval": "core.approval",
    "Call": "policy.call",
    "Channel": "channels.channel",
    "ChannelContext": "channels.channel_context",
    "ConfigError": "errors",
    "DeliveryClient": "channels.delivery",
    "DeliveryError": "channels.delivery",
    "EmbeddedConnection": "embed.open_gate",
    "EmbeddedGate": "embed.open_gate",
    "Policy": "policy.policy",
    "RecordError": "errors",
    "RequestGoneError": "channels.delivery",
    "StoreError": "errors",
    "ThoughtGateError": "errors",
    "Verdict": "policy.call",
    "Vote": "core.approval",
    "__version__": "version",
    "judge": "embed.policies",
    "load_policy": "embed.policies",
    "open_gate": "embed.open_gate",
}
"""The module of each name."""


if not TYPE_CHECKING:  # with it, type checkers would accept any name

    def __getattr__(name: str) -> object:
        """Load a name of the API when it is first used."""
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module 'thoughtgate' has no attribute {name!r}")
        from importlib import import_module  # only a program that uses the API needs it

        value = getattr(import_module(f"thoughtgate.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the API."""
    return sorted({*globals(), *__all__})
