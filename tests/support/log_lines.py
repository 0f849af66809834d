"""Log lines as a process wrote them, among its other words."""

import json
from typing import Any


def verdicts(stderr: str, component: str) -> list[dict[str, Any]]:
    """Return the JSON lines in which a component tells of verdicts."""
    lines = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    return [
        line
        for line in lines
        if line.get("component") == component and "governance_decision" in line
    ]
