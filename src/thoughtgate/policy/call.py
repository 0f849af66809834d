"""A call to be judged, and the verdict on it: the two values all gates speak in."""

from typing import Any, Final, NamedTuple

FORWARD: Final = "forward"
DENY: Final = "deny"
APPROVE: Final = "approve"
POLICY: Final = "policy"
"""An action of a rule only: ask Cedar. Never the action of a verdict."""

TOOL: Final = "tool"
RESOURCE: Final = "resource"
PROMPT: Final = "prompt"

PRODUCTION: Final = "production"
DEVELOPMENT: Final = "development"


MAX_KEPT: Final = 512
"""Characters of a name that is remembered: callers choose names, and a message holds long ones."""


class Call(NamedTuple):
    """One gated request, as every gate sees it. Identity is (server, kind, name), byte for byte."""

    server: str
    """The id of the server: the key in the config, or what the shim was told."""
    kind: str
    """``tool``, ``resource`` or ``prompt``."""
    name: str
    """The tool's or prompt's original name, or the resource's URI."""
    arguments: dict[str, Any]
    """The arguments as sent; empty when absent."""
    method: str = "tools/call"
    """The MCP method that carries the call."""
    annotations: dict[str, Any] | None = None
    """What the server says of the tool in its list; may only tighten a verdict."""
    principal: str = "local"
    """Who asks: the agent id, or the authenticated identity on HTTP."""
    session: str = ""
    """The session the call belongs to, for grants and limits scoped to a session."""
    args_hash: str = ""
    """SHA-256 over the canonical arguments; empty until somebody needs it."""
    session_calls: int = 0
    """Calls forwarded in the session so far; Cedar policies may ask for it."""
    claims: dict[str, Any] | None = None
    """What authentication says of the principal; Cedar policies may ask for it."""


class Verdict(NamedTuple):
    """What the gates say: forward, deny, or ask a person; and who said so, and why."""

    action: str
    """``forward``, ``deny`` or ``approve``."""
    gate: str
    """The gate that decided: visibility, rules, cedar, limits, approval, default, internal."""
    kind: str = ""
    """For a denial: the error kind the caller is told."""
    reason: str = ""
    """For the record and the approver: why. Never sent to the caller when it holds rule text."""
    rule: str = ""
    """For the record: which rule or policy, such as ``rules[3]`` or a Cedar policy id."""
    workflow: str = ""
    """For ``approve``: the workflow that asks."""
    retry_after_s: float = 0.0
    """For a limit: when it may work again; 0 when waiting does not help."""
    enforced: bool = True
    """False in the development profile: the call went on although this verdict says otherwise."""
    redact: bool = False
    """True when the rule asks for secrets to be masked in the result too."""
    trace: str = ""
    """For ``forward``, where the gate traces: the W3C context under which the server works."""


class Condition(NamedTuple):
    """One test on one argument, such as ``amount`` ``gt`` 100."""

    path: tuple[str, ...]
    """Keys from the top of the arguments down."""
    operator: str
    """One of the operators in ``policy.conditions``."""
    operand: Any
    """What it is compared with."""
