"""The change from one loaded config to another: its effect, and its description for people.

Imported only when a file has changed: comparing policies takes more code than judging by them.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from thoughtgate.analysis.comparison import compare
from thoughtgate.analysis.rule_changes import CHANGES, LOOSENS, TIGHTENS, UNTOLD, PolicyChange
from thoughtgate.analysis.setting_changes import compare_settings
from thoughtgate.config.parse import parse
from thoughtgate.errors import ConfigError
from thoughtgate.gate.config_files import Loaded, secret_values
from thoughtgate.gate.policy_files.checked_files import absolute_path
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.policies import digest_of_texts

NO_EFFECT: Final = "none"

EFFECTS: Final = (LOOSENS, UNTOLD, TIGHTENS, CHANGES)
"""The effects of a change; the first one that occurs is the effect of the whole."""

MAX_LINES: Final = 5000
"""Maximum lines of a file whose text is compared: with more, that could take seconds."""
MAX_SHOWN: Final = 65_536
"""Maximum characters of a description; nobody would read a longer one."""
MAX_LISTED: Final = 100
"""Maximum number of effects that are listed of each kind; the text shows the whole change."""

AT_START: Final = (
    "profile",
    "listen.*",
    "audit.*",
    "store",
    "tasks.*",
    "holds.*",
    "telemetry.*",
    "console.*",
    "servers.*",
    "namespaces.*",
    "default_namespace",
    "separator",
    "manager_tools",
    "approval.*.channel",
    "approval.*.slack*",
    "approval.*.webhook*",
    "approval.*.options*",
)
"""Settings that a gate reads only when it starts, as patterns of their keys."""

ALWAYS_APPLIED: Final = ("servers.*.expose", "servers.*.enabled")
"""Settings among those above that are part of the policy."""


@dataclass(frozen=True, slots=True)
class Change:
    """The difference between two configs."""

    effect: str
    """``loosens``, ``cannot_be_told``, ``changes``, ``tightens`` or ``none``."""
    found: tuple[PolicyChange, ...]
    after_restart: tuple[str, ...]
    """The settings that apply only after a restart."""
    applies: bool
    """Whether anything applies without a restart."""
    digest: str
    """Identifies the new texts of the files that changed."""
    shown: Mapping[str, Any]
    """The difference for people, in JSON form."""
    is_whole: bool
    """Whether ``shown`` contains the whole difference."""

    @property
    def needs_acceptance(self) -> bool:
        """Tell whether a person must accept the change."""
        return self.effect in {LOOSENS, UNTOLD}

    @property
    def words(self) -> str:
        """The effect in words."""
        if self.effect == LOOSENS:
            return "it loosens the policy"
        return "it may loosen the policy" if self.effect == UNTOLD else "it loosens nothing"


def find_change(
    old: Loaded,
    new: Loaded,
    environ: Mapping[str, str],
    at: float,
    *,
    applied: Iterable[str] = (),
) -> Change:
    """Compare two configs; ``applied`` are settings that the product itself applies.

    Secrets that either config takes from ``environ`` are masked in the description.
    """
    found = [
        *_profile(old, new),
        *compare_settings(old.settings, new.settings),
        *compare(old.policy, new.policy, now=at),
    ]
    effect = next((one for one in EFFECTS if any(one == each.effect for each in found)), NO_EFFECT)
    late = tuple(dict.fromkeys(one.subject for one in found if _is_late(one.subject, applied)))
    lines, is_whole = _text_difference(old, new)
    listed = {one: [_line(each) for each in found if each.effect == one] for one in EFFECTS}
    mask = difference_mask(old, new, environ)
    shown: dict[str, Any] = {
        name: [mask.mask_text(one) for one in _some(told)] for name, told in listed.items() if told
    }
    if late:
        shown["applies_after_restart"] = list(late)
    if is_whole:
        shown["files"] = [mask.mask_text(line) for line in lines]
        is_whole = len(json.dumps(shown, ensure_ascii=False)) <= MAX_SHOWN
    if not is_whole:
        shown.pop("files", None)
    return Change(
        effect,
        tuple(found),
        late,
        len(late) < len({one.subject for one in found}),
        _change_digest(old, new),
        shown,
        is_whole,
    )


def _change_digest(old: Loaded, new: Loaded) -> str:
    """Return a digest of the files that differ, with their new texts."""
    names = {
        name for name in {*old.texts, *new.texts} if old.texts.get(name) != new.texts.get(name)
    }
    return digest_of_texts({name: new.texts.get(name, "") for name in names})


def _profile(old: Loaded, new: Loaded) -> Iterator[PolicyChange]:
    """Yield a change of the profile in the file; the profile of a run does not change."""
    before, after = _profile_in_file(old), _profile_in_file(new)
    if before != after and old.policy.profile == new.policy.profile:
        effect = LOOSENS if after == DEVELOPMENT else TIGHTENS if after == PRODUCTION else UNTOLD
        yield PolicyChange(effect, "profile", before, after)


def _profile_in_file(loaded: Loaded) -> Any:
    if loaded.path is None:
        return PRODUCTION
    try:
        data = parse(loaded.texts[absolute_path(loaded.path)], file=loaded.path).data
    except ConfigError:
        return ""
    return data.get("profile", PRODUCTION)


def _is_late(subject: str, applied: Iterable[str]) -> bool:
    def is_any(patterns: Iterable[str]) -> bool:
        return any(fnmatchcase(subject, pattern) for pattern in patterns)

    return is_any(AT_START) and not is_any(ALWAYS_APPLIED) and not is_any(applied)


def difference_mask(old: Loaded, new: Loaded, environ: Mapping[str, str]) -> Redactor:
    """Return the redactor for the difference; that of the new config could hide the change."""
    secrets = [*secret_values(old.settings, environ), *secret_values(new.settings, environ)]
    return Redactor(old.settings.redact.names, secrets, old.settings.redact.patterns)


def _text_difference(old: Loaded, new: Loaded) -> tuple[list[str], bool]:
    """Return the difference of the files' texts, and whether it could be compared."""
    lines: list[str] = []
    for name in sorted({*old.texts, *new.texts}):
        if old.texts.get(name, "") == new.texts.get(name, ""):
            continue
        # Not ``splitlines``: it takes characters for the end of a line that a reader of the policy
        # takes for a part of it, so a rule moved into a comment would be no difference.
        before, after = old.texts.get(name, "").split("\n"), new.texts.get(name, "").split("\n")
        if max(len(before), len(after)) > MAX_LINES:
            return [], False
        lines += difflib.unified_diff(before, after, f"{name} (in force)", name, lineterm="", n=2)
    return lines, True


def _some(lines: list[str]) -> list[str]:
    more = len(lines) - MAX_LISTED
    return lines if more <= 0 else [*lines[:MAX_LISTED], f"and {more} more"]


def _line(change: PolicyChange) -> str:
    return f"{change.subject}: {_words(change.before)} -> {_words(change.after)}"


def _words(value: Any) -> str:
    if value is None or value == "":
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
