"""Selects the part of a project's config that counts although the user has not trusted it.

Anybody who can write to a repository can write such a file. Only its default, rules, limits and
exposures are used, and they can only tighten; everything else is left out before the file is
checked, so that nothing in it is read, resolved or started.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.config.read_keys import keys_of
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.policy.call import FORWARD, POLICY

_COUNTED: Final = ("schema", "default", "servers", "rules", "limits")


class Restricted(NamedTuple):
    """The part of a config that counts."""

    data: dict[str, Any]
    ignored: tuple[str, ...]
    """The keys that were left out, in the order of the file."""


def restrict(data: dict[str, Any]) -> Restricted:
    """Return the part of an untrusted project's data that counts; unknown keys stay and are errors."""
    known = keys_of(Settings)
    kept = {key: value for key, value in data.items() if key in _COUNTED or key not in known}
    ignored = [key for key in data if key not in kept]
    if kept.get("default") == POLICY:
        # Cedar files are not read here; to forward leaves the decision to the user's own policy.
        kept["default"] = FORWARD
        ignored.append("default: policy")
    if isinstance(servers := kept.get("servers"), dict):
        kept["servers"] = {key: _exposure(key, entry, ignored) for key, entry in servers.items()}
    if isinstance(rules := kept.get("rules"), list):
        kept["rules"] = _without_cedar(rules, ignored)
    if isinstance(workflows := data.get("approval"), dict):
        # Rules may only name workflows that exist; the user's own workflows are used in the end.
        kept["approval"] = {name: {} for name in workflows}
    return Restricted(kept, tuple(ignored))


def _exposure(key: str, entry: Any, ignored: list[str]) -> Any:
    if not isinstance(entry, dict):
        return entry
    known = keys_of(ServerSettings)
    left = [name for name in entry if name in known and name != "expose"]
    ignored += [f"servers.{key}.{name}" for name in left]
    return {name: value for name, value in entry.items() if name not in left}


def _without_cedar(rules: list[Any], ignored: list[str]) -> list[Any]:
    """Leave out rules that ask Cedar; the others keep the ids that their positions give them."""
    kept = []
    for at, rule in enumerate(rules):
        if isinstance(rule, dict) and rule.get("action") == POLICY:
            ignored.append(f"rules[{at}]")
        elif isinstance(rule, dict) and "id" not in rule:
            kept.append({**rule, "id": f"rules[{at}]"})
        else:
            kept.append(rule)
    return kept
