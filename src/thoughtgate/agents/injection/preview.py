"""What ``wrap --dry-run`` shows of an injection. Values of variables and headers are hidden."""

import json
import shlex
from typing import Any, Final

from thoughtgate.agents.injection.injection import Injection
from thoughtgate.errors import visible

_HIDDEN: Final = frozenset({"env", "environment", "headers", "http_headers"})
_MASK: Final = "***"


def preview(injection: Injection) -> str:
    """Return the command line, the variables and the private files of an injection."""
    parts = ["No file of the agent changes. It would be started with:\n"]
    variables = sorted(injection.variables.items())
    parts += [f"  {name}={shlex.quote(_masked(text))}\n" for name, text in variables]
    parts += [f"  {shlex.join(injection.command)}\n"]
    for file in injection.files:
        parts += [f"\n{file.path} (readable by you alone, removed at the end):\n"]
        parts += [_masked(file.content.decode()), "\n"]
    return visible("".join(parts), kept="\n\t")


def _masked(text: str) -> str:
    try:
        return json.dumps(_hide(json.loads(text)), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def _hide(value: Any) -> Any:
    if isinstance(value, list):
        return [_hide(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: dict.fromkeys(one, _MASK) if key in _HIDDEN and isinstance(one, dict) else _hide(one)
        for key, one in value.items()
    }
