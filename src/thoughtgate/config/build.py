"""Settings to the policy that decides on calls."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict

from thoughtgate.config.settings import (
    LimitSettings,
    RuleSettings,
    SelectorSettings,
    ServerSettings,
    Settings,
)
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.limits import Breaker, Limit, Rate
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import Exposure, Visibility


def build_policy(
    settings: Settings, *, starter: bool = False, secrets: Iterable[str] = ()
) -> Policy:
    """Compile the settings; ``secrets`` are literal values to mask wherever they occur.

    Raises:
        ConfigError: a Cedar file does not parse.
    """
    return Policy(
        version=policy_version(settings),
        profile=settings.profile,
        default=settings.default,
        server_requests=settings.server_requests,
        visibility=Visibility({key: _exposure(one) for key, one in settings.servers.items()}),
        rules=RuleSet(_rule(one) for one in settings.rules),
        cedar=CedarEngine(settings.cedar) if settings.cedar else None,
        limits=tuple(_limit(one) for one in settings.limits),
        redactor=Redactor(settings.redact.names, secrets, settings.redact.patterns),
        workflows=frozenset(settings.approval),
        starter=starter,
    )


def policy_version(settings: Settings) -> str:
    """Return a short digest of everything that can change a verdict."""
    judged_by = {
        "profile": settings.profile,
        "default": settings.default,
        "server_requests": settings.server_requests,
        "servers": {
            key: [asdict(one.expose), one.enabled] for key, one in settings.servers.items()
        },
        "rules": [asdict(one) for one in settings.rules],
        "cedar": settings.cedar,
        "limits": [asdict(one) for one in settings.limits],
        "approval": {name: asdict(one) for name, one in settings.approval.items()},
    }
    canonical = json.dumps(judged_by, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _exposure(server: ServerSettings) -> Exposure:
    return Exposure.of(server.expose.mode, server.expose.names, enabled=server.enabled)


def _selector(settings: SelectorSettings) -> Selector:
    return Selector(
        kinds=frozenset(settings.kinds),
        names=compile_globs(settings.names),
        servers=compile_globs(settings.servers),
        words=frozenset(settings.words),
    )


def _rule(settings: RuleSettings) -> Rule:
    return Rule(
        id=settings.id,
        action=settings.action,
        selector=_selector(settings.selector),
        conditions=parse_conditions(settings.when),
        annotations=parse_conditions(settings.annotations),
        workflow=settings.approval,
        reason=settings.reason,
        redact=settings.redact,
    )


def _limit(settings: LimitSettings) -> Limit:
    rate, budget, breaker = settings.rate, settings.budget, settings.breaker
    return Limit(
        id=settings.id,
        selector=_selector(settings.selector),
        rate=Rate(rate.count, rate.period_s) if rate else None,
        budget=budget.count if budget else None,
        window_s=budget.window_s if budget else 0.0,
        exact=settings.exact,
        duplicate_s=settings.duplicate_s,
        breaker=Breaker(breaker.failures, breaker.within_s, breaker.cooldown_s)
        if breaker
        else None,
        scope=settings.scope,
    )
