"""Builds the policy that decides on calls from the settings."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from thoughtgate.config.settings import (
    FactSettings,
    LimitSettings,
    RuleSettings,
    SelectorSettings,
    ServerSettings,
    Settings,
    SilenceSettings,
)
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.definitions import DefinitionPolicy, Silence
from thoughtgate.policy.facts import Flows, ServerFlows
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.inspection.content_policy import TREATMENTS, ContentPolicy, ServerContents
from thoughtgate.policy.limits import Breaker, Limit, Rate
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import ANY_SERVER, Exposure, Visibility


def build_policy(
    settings: Settings, *, starter: bool = False, secrets: Iterable[str] = ()
) -> Policy:
    """Compile the settings; ``secrets`` are literal values to mask wherever they occur.

    Raises:
        ConfigError: a Cedar file does not parse.
    """
    cedar = CedarEngine(settings.cedar) if settings.cedar else None
    return Policy(
        version=policy_version(settings),
        profile=settings.profile,
        default=settings.default,
        server_requests=settings.server_requests,
        visibility=Visibility({key: _exposure(one) for key, one in settings.servers.items()}),
        rules=RuleSet(_rule(one) for one in settings.rules),
        cedar=cedar,
        limits=tuple(_limit(one) for one in settings.limits),
        definitions=_definitions(settings.servers),
        contents=_contents(settings.servers),
        flows=_flows(settings, cedar),
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
            key: [
                asdict(one.expose),
                one.enabled,
                *_asked_of_definitions(one),
                *(asdict(asked) for asked in (one.results, one.arguments) if asked is not None),
                *_flow_keys(one),
            ]
            for key, one in settings.servers.items()
        },
        "rules": [asdict(one) for one in settings.rules],
        "cedar": settings.cedar,
        # Left out if unset, so that the version of configs without it stays the same.
        **({} if settings.facts == FactSettings() else {"facts": settings.facts.window_s}),
        "limits": [asdict(one) for one in settings.limits],
        "approval": {name: asdict(one) for name, one in settings.approval.items()},
    }
    canonical = json.dumps(judged_by, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _asked_of_definitions(server: ServerSettings) -> list[object]:
    """Return what a server's entry says about definitions; empty if it says nothing."""
    if not server.definitions and not server.silence:
        return []
    return [server.definitions, [asdict(one) for one in server.silence]]


def _definitions(servers: Mapping[str, ServerSettings]) -> DefinitionPolicy:
    return DefinitionPolicy(
        {key: one.definitions for key, one in servers.items() if one.definitions},
        {key: tuple(map(_silence, one.silence)) for key, one in servers.items() if one.silence},
    )


def _contents(servers: Mapping[str, ServerSettings]) -> ContentPolicy | None:
    """Return what happens to contents; None if no server's entry says anything about them."""
    others = servers.get(ANY_SERVER) or ServerSettings(ANY_SERVER)
    asked = {key: _server_contents(one, others) for key, one in servers.items()}
    # A server that turns off what "*" says must be kept, so that "*" does not apply to it.
    return ContentPolicy(asked) if any(map(ServerContents.is_asked, asked.values())) else None


def _server_contents(server: ServerSettings, others: ServerSettings) -> ServerContents:
    results = server.results if server.results is not None else others.results
    arguments = server.arguments if server.arguments is not None else others.arguments
    lists = {name: getattr(results, name) for name in TREATMENTS} if results is not None else {}
    return ServerContents(
        {name: compile_globs(checks) for name, checks in lists.items() if checks},
        block_secrets=arguments is not None and arguments.block_secrets,
        silences=tuple(map(_silence, server.silence or others.silence)),
        recorded_arguments=compile_globs(arguments.record if arguments is not None else ()),
    )


def _silence(settings: SilenceSettings) -> Silence:
    return Silence(compile_globs(settings.check), compile_globs(settings.tool), settings.reason)


def _flow_keys(server: ServerSettings) -> list[Any]:
    """Return what a server's flows add to the digest; nothing for a server without any."""
    outbound = None if server.outbound is None else list(server.outbound)
    return [[*server.provides], outbound] if server.provides or outbound is not None else []


def _flows(settings: Settings, cedar: CedarEngine | None) -> Flows:
    return Flows(
        {
            key: ServerFlows(
                frozenset(one.provides),
                None if one.outbound is None else compile_globs(one.outbound),
            )
            for key, one in settings.servers.items()
        },
        settings.facts.window_s,
        asked=any(rule.when_facts for rule in settings.rules)
        or (cedar is not None and cedar.looks_at("facts")),
    )


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
        facts=frozenset(settings.when_facts),
        workflow=settings.approval,
        reason=settings.reason,
        redact=settings.redact,
        scopes=settings.scope,
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
