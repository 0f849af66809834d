"""The effect of changed exposures: which names a server shows, compared pattern by pattern.

Probes cannot show everything: a name that matches ``a*`` may also match ``a*x``. A change that is
not certainly harmless is therefore reported as ``cannot_be_told``.
"""

from collections.abc import Iterator
from typing import NamedTuple

from thoughtgate.analysis.rule_changes import LOOSENS, UNTOLD, PolicyChange, glob_covers
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.visibility import ALL, ALLOW, BLOCK, Exposure, Visibility


class ExposureChange(NamedTuple):
    """A server that may show more names than before."""

    server: str
    """The id of the server; ``*`` for all that have no entry."""
    change: PolicyChange


def compare_exposures(old: Visibility, new: Visibility) -> Iterator[ExposureChange]:
    """Yield the servers that show, or may show, names that were hidden before."""
    for server in sorted({*old.servers, *new.servers}):
        before, after = old.exposure(server), new.exposure(server)
        effect = _effect(before, after)
        if effect:
            words = _words(before), _words(after)
            yield ExposureChange(server, PolicyChange(effect, f"servers.{server}.expose", *words))


def _effect(old: Exposure, new: Exposure) -> str:
    """Return the effect if names may become visible; empty if certainly none does."""
    if not new.enabled or (old.enabled and old.mode == ALL):
        return ""
    if not old.enabled or new.mode == ALL:
        return LOOSENS
    before, after = _globs(old), _globs(new)
    if old.mode == new.mode == ALLOW:
        return "" if _are_covered(after, before) else UNTOLD
    if old.mode == new.mode == BLOCK:
        return "" if _are_covered(before, after) else UNTOLD
    return UNTOLD


def _are_covered(narrow: list[Glob], wide: list[Glob]) -> bool:
    return all(any(glob_covers(one, other) for one in wide) for other in narrow)


def _globs(exposure: Exposure) -> list[Glob]:
    return [*(Glob(name) for name in sorted(exposure.names)), *exposure.globs]


def _words(exposure: Exposure) -> str:
    if not exposure.enabled:
        return "disabled"
    return " ".join([exposure.mode, *(glob.pattern for glob in _globs(exposure))])
