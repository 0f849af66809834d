"""The configs of the warm gates, one for all faces."""

from typing import Any, Final

from tests.faces.face import Setup

CEDAR: Final = """
@id("yes") permit(principal, action, resource == Tool::"sample/cedar_yes");
@id("asks") @approval permit(principal, action, resource == Tool::"sample/cedar_asks");
@id("any") permit(principal, action, resource == Tool::"sample/cedar_no");
@id("no") forbid(principal, action, resource == Tool::"sample/cedar_no");
@id("broken") permit(principal, action, resource == Tool::"sample/cedar_error")
when { context.arguments.absent == 1 };
"""

ENTRY: Final[dict[str, Any]] = {
    "expose": {"block": ["hidden_tool", "face:///hidden", "hidden_prompt"]},
    "timeout": "6s",
}

POLICY: Final[dict[str, Any]] = {
    "default": "deny",
    "rules": [
        {"id": "closed", "tool": "denied", "action": "deny", "reason": "it is closed"},
        {"id": "scoped", "tool": "scoped", "action": "forward", "scope": ["tools:read", "tools:write"]},
        {"id": "people", "tool": "asked", "action": "approve"},
        {"id": "brief", "tool": "asked_briefly", "action": "approve", "approval": "brief"},
        {"id": "lenient", "tool": "asked_lenient", "action": "approve", "approval": "lenient"},
        {"id": "cedar", "tool": "cedar_*", "action": "policy"},
        {
            "id": "open",
            "tool": [
                "echo", "extra", "limited", "budgeted", "repeated", "breaking", "hidden_tool",
                "regional", "grown_*", "none_such",
            ],
            "action": "forward",
        },
        {"id": "resource-closed", "resource": "face:///closed", "action": "deny"},
        {"id": "resource-open", "kind": "resource", "action": "forward"},
        {"id": "prompt-shut", "prompt": "shut", "action": "deny"},
        {"id": "prompt-open", "kind": "prompt", "action": "forward"},
    ],
    "limits": [
        {"id": "rate", "tool": "limited", "rate": "2/h"},
        {"id": "budget", "tool": "budgeted", "budget": 2},
        {"id": "twice", "tool": "repeated", "duplicate": "10m"},
        {"id": "fuse", "tool": "breaking", "breaker": {"failures": 2, "within": "10m", "cooldown": "10m"}},
    ],
    "cedar": {"policies": ["policy.cedar"]},
    "approval": {
        "default": {"channel": "console", "timeout": "60s"},
        "brief": {"channel": "console", "timeout": "5s"},
        "lenient": {"channel": "console", "timeout": "5s", "on_timeout": "approve"},
    },
}  # fmt: skip

MAIN: Final = Setup(POLICY, ENTRY, {"policy.cedar": CEDAR})
DEVELOPMENT: Final = Setup({**POLICY, "profile": "development"}, ENTRY, {"policy.cedar": CEDAR})
