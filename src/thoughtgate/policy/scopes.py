"""Scopes of OAuth tokens: what an agent's token grants, and what a rule requires.

A rule with ``scope`` refuses the calls that it matches if the caller's token lacks one of its
scopes. The refusal names every scope that the call needs, so that a client can ask its
authorization server for all of them at once.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from thoughtgate.policy.call import DENY, Call, Verdict, strictness

INSUFFICIENT_SCOPE: Final = "insufficient_scope"

CLAIMS: Final = ("scope", "scp")
"""The claims that list scopes: RFC 9068, and what some issuers use instead."""


def scopes_of(claims: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the scopes that a token's claims grant; none without a token.

    A claim is a text with scopes between spaces, or a list. Anything else grants nothing.
    """
    found: set[str] = set()
    for name in CLAIMS:
        value = claims.get(name) if claims is not None else None
        if type(value) is str:
            found.update(value.split(" "))  # RFC 6749, 3.3: only spaces separate scopes
        elif type(value) is list:
            found.update(one for one in value if type(one) is str)
    return frozenset(found - {""})


def lacks_scopes(call: Call, scopes: tuple[str, ...], rule: str) -> Verdict | None:
    """Return the refusal of a call whose token lacks some of these scopes; None if it has all."""
    granted = scopes_of(call.claims)
    missing = [scope for scope in scopes if scope not in granted]
    if not missing:
        return None
    reason = f"the token lacks {'the scope' if len(missing) == 1 else 'the scopes'}"
    return Verdict(
        DENY,
        "rules",
        INSUFFICIENT_SCOPE,
        f"{reason} {' '.join(missing)}",
        rule,
        scopes=" ".join(scopes),
        missing_scopes=" ".join(missing),
    )


def stricter(verdict: Verdict, other: Verdict) -> Verdict:
    """Return the stricter of two verdicts on a call; the first one if they are equally strict.

    Of two refusals for missing scopes, the result names the scopes of both. Any other denial comes
    before such a refusal, because more scopes would not help.
    """
    more = strictness(other) - strictness(verdict)
    if more or verdict.kind != INSUFFICIENT_SCOPE:
        return other if more > 0 else verdict
    if other.kind != INSUFFICIENT_SCOPE:
        return other
    return verdict._replace(
        scopes=_joined(verdict.scopes, other.scopes),
        missing_scopes=_joined(verdict.missing_scopes, other.missing_scopes),
    )


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the strictest of one or more verdicts on a call, as ``stricter`` does."""
    found, *others = verdicts
    for other in others:
        found = stricter(found, other)
    return found


def _joined(one: str, other: str) -> str:
    return " ".join(dict.fromkeys([*one.split(" "), *other.split(" ")]))


def deny_mixed_workflows(verdict: Verdict) -> Verdict:
    """Return the denial of a request whose parts need approval from different workflows."""
    reason = "different people must approve parts of it; ask for each alone"
    return verdict._replace(action=DENY, kind="governance_denied", reason=reason, workflow="")
