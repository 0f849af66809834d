"""The call that the gates judge, and their verdict on it."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:  # the service shim loads this module, but judges nothing
    from thoughtgate.wire.readings import ArgumentReadings

FORWARD: Final = "forward"
DENY: Final = "deny"
APPROVE: Final = "approve"
POLICY: Final = "policy"
"""Evaluate the Cedar policies. Only an action of rules, never of a verdict."""
LIST: Final = "list"
"""Fetch the server's list of tools, then judge again. Only from the judge, never in a policy."""

TOOL: Final = "tool"
RESOURCE: Final = "resource"
PROMPT: Final = "prompt"

SAMPLING: Final = "sampling"
ELICITATION: Final = "elicitation"
ROOTS: Final = "roots"

SERVER_KINDS: Final = frozenset({SAMPLING, ELICITATION, ROOTS})
"""Kinds of requests that a server makes to the agent."""

KINDS: Final = (TOOL, RESOURCE, PROMPT, SAMPLING, ELICITATION, ROOTS)
"""All kinds, as rules name them."""

PRODUCTION: Final = "production"
DEVELOPMENT: Final = "development"


MAX_KEPT: Final = 512
"""Maximum characters of a name that is remembered; callers can choose very long names."""


class Call(NamedTuple):
    """One gated request. It is identified by (server, kind, name), compared exactly."""

    server: str
    """The id of the server: its key in the config, or the shim's option."""
    kind: str
    """``tool``, ``resource`` or ``prompt``, or one of ``SERVER_KINDS``."""
    name: str
    """The tool's or prompt's original name, or the resource's URI."""
    arguments: dict[str, Any]
    """The arguments as sent; empty when absent."""
    method: str = "tools/call"
    """The MCP method that carries the call."""
    annotations: dict[str, Any] | None = None
    """The tool's annotations in the server's list. They can only make a verdict stricter, because
    the server writes them."""
    principal: str = "local"
    """The caller: the agent id, or the authenticated identity on HTTP."""
    session: str = ""
    """The session the call belongs to, as the record numbers it."""
    args_hash: str = ""
    """SHA-256 of the canonical arguments; empty until it is needed."""
    session_calls: int = 0
    """Calls forwarded in the session so far, for Cedar policies."""
    claims: dict[str, Any] | None = None
    """Claims from the principal's authentication, for Cedar policies."""
    spelled: str = ""
    """The URI as the caller wrote it, if ``name`` is another reading of it."""
    readings: "ArgumentReadings | None" = None
    """The folded keys of the arguments, if the call is evaluated several times."""
    extra: dict[str, Any] | None = None
    """What the request's params carry beyond name and arguments (``wire.extra_params``)."""
    extra_hash: str = ""
    """SHA-256 of the canonical ``extra``; empty without it, or if it has no canonical form."""
    definition: str = ""
    """For a tool: digest of its last listed definition; empty if the server has not listed it."""
    is_listed: bool = True
    """Whether the tool's annotations are known; if not, a condition on them is undetermined."""
    facts: frozenset[str] | None = frozenset()
    """The facts that hold (``policy.facts``); None if they cannot be read."""
    session_key: str = ""
    """Identifies the session at every gate that shares a store; ``session`` is a number that is
    unique only within one run."""


INSPECT_AFTER: Final = 2
"""An answer goes to the agent at once and is inspected afterwards, for the record."""
INSPECT_BEFORE: Final = 1
"""An answer is inspected before the agent gets it."""


class Verdict(NamedTuple):
    """The decision of the gates (forward, deny or ask a reviewer), with gate and reason."""

    action: str
    """``forward``, ``deny`` or ``approve``."""
    gate: str
    """The gate that decided: visibility, rules, cedar, limits, approval, contents, definitions,
    default, stop, facts, internal."""
    kind: str = ""
    """For a denial: the error kind that the caller gets."""
    reason: str = ""
    """The reason, for the record and the approver. Rule text is never sent to the caller."""
    rule: str = ""
    """For the record: the rule or policy, such as ``rules[3]`` or a Cedar policy id."""
    workflow: str = ""
    """For ``approve``: the workflow to use."""
    retry_after_s: float = 0.0
    """For a limit: when the call may succeed; 0 if waiting does not help."""
    enforced: bool = True
    """False in the development profile, which forwards the call in spite of this verdict."""
    redact: bool = False
    """Whether secrets are masked in the result too."""
    trace: str = ""
    """For ``forward`` with tracing: the W3C trace context to send to the server."""
    scopes: str = ""
    """For ``insufficient_scope``: every scope that the call needs, separated by spaces."""
    missing_scopes: str = ""
    """For ``insufficient_scope``: those of them that the caller's token does not have."""
    inspect: int = 0
    """For ``forward``: whether the answer is inspected, before or after the agent gets it."""
    findings: tuple[tuple[str, str, str], ...] = ()
    """For ``content_blocked``: check, tier and place of what was found, never what it is."""
    on_facts: bool = False
    """For ``approve``: whether facts may be the reason. Then a remembered approval for another rule
    does not apply."""


_STRICTNESS: Final = {FORWARD: 0, APPROVE: 1, DENY: 2}


def strictness(verdict: Verdict) -> int:
    """Return a number that is higher for a stricter verdict."""
    return _STRICTNESS[verdict.action]


class Condition(NamedTuple):
    """One test on one argument, such as ``amount`` ``gt`` 100."""

    path: tuple[str, ...]
    """Keys that lead from the arguments to the value."""
    operator: str
    """One of the operators in ``policy.conditions``."""
    operand: Any
    """The value to compare with."""
