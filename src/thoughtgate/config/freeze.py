"""From checked models to frozen settings: the one place that knows both."""

from collections.abc import Mapping
from typing import Any

from thoughtgate.config import settings as frozen
from thoughtgate.config.models import (
    AuditModel,
    BreakerModel,
    ConfigModel,
    ExposeModel,
    LimitModel,
    ListenModel,
    Model,
    RuleModel,
    SelectorModel,
    ServerModel,
    TelemetryModel,
    WorkflowModel,
)
from thoughtgate.policy.cedar_text import CedarSource


def freeze(model: ConfigModel, cedar: tuple[CedarSource, ...]) -> frozen.Settings:
    """Return the settings of a checked model, with the text of its Cedar files."""
    workflows = {"default": WorkflowModel(), **model.approval}
    return frozen.Settings(
        default=model.default,
        profile=model.profile,
        servers={key: _server(key, one) for key, one in model.servers.items()},
        rules=tuple(_rule(number, one) for number, one in enumerate(model.rules)),
        cedar=cedar,
        limits=tuple(_limit(number, one) for number, one in enumerate(model.limits)),
        approval={name: _workflow(name, one) for name, one in workflows.items()},
        listen=_listen(model.listen),
        namespaces={name: tuple(ids) for name, ids in model.namespaces.items()},
        default_namespace=model.default_namespace,
        audit=_audit(model.audit),
        store=model.store,
        holds=frozen.HoldSettings(**_plain(model.holds)),
        tasks=frozen.TaskSettings(**_plain(model.tasks, "ttl", "max_ttl", "poll")),
        console=frozen.ConsoleSettings(**_plain(model.console)),
        telemetry=_telemetry(model.telemetry),
        redact=frozen.RedactSettings(**_plain(model.redact)),
        manager_tools=model.manager_tools,
        separator=model.separator,
        reload=model.reload,
    )


def _plain(model: Model, *durations: str, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a model: lists as tuples, None left out, durations named in seconds."""
    found = {}
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name not in without and value is not None:
            frozen_value = tuple(value) if isinstance(value, list) else value
            found[f"{name}_s" if name in durations else name] = frozen_value
    return found


def _server(key: str, model: ServerModel) -> frozen.ServerSettings:
    left_out = ("type", "disabled", "enabled", "expose", "auth")
    fields = _plain(model, "timeout", "start_timeout", "connect_timeout", "idle", without=left_out)
    return frozen.ServerSettings(
        id=key,
        expose=_expose(model.expose),
        enabled=model.enabled and not model.disabled,
        auth=frozen.ServerAuth(**_plain(model.auth)) if model.auth else None,
        **fields,
    )


def _expose(model: ExposeModel) -> frozen.Expose:
    for mode, names in (("allow", model.allow), ("block", model.block)):
        if names is not None:
            return frozen.Expose(mode, tuple(names))
    return frozen.Expose()


def _selector(model: SelectorModel) -> frozen.SelectorSettings:
    named: Mapping[str, list[str] | None] = {
        "tool": model.tool,
        "resource": model.resource,
        "prompt": model.prompt,
    }
    kinds = tuple(kind for kind, names in named.items() if names)
    return frozen.SelectorSettings(
        kinds=kinds or ((model.kind,) if model.kind else ()),
        names=tuple(name for names in named.values() for name in names or ()),
        servers=tuple(model.server or ()),
        words=tuple(word.lower() for word in model.words or ()),
    )


def _rule(number: int, model: RuleModel) -> frozen.RuleSettings:
    return frozen.RuleSettings(
        id=model.id or f"rules[{number}]",
        action=model.action,
        selector=_selector(model),
        when=model.when,
        annotations=model.annotations,
        approval=model.approval,
        reason=model.reason,
        redact=model.redact,
    )


def _limit(number: int, model: LimitModel) -> frozen.LimitSettings:
    return frozen.LimitSettings(
        id=model.id or f"limits[{number}]",
        selector=_selector(model),
        rate=frozen.RateSettings(*model.rate) if model.rate else None,
        budget=model.budget,
        duplicate_s=model.duplicate,
        breaker=_breaker(model.breaker) if model.breaker else None,
        scope=model.scope or "",
    )


def _breaker(model: BreakerModel) -> frozen.BreakerSettings:
    return frozen.BreakerSettings(**_plain(model, "within", "cooldown"))


def _workflow(name: str, model: WorkflowModel) -> frozen.WorkflowSettings:
    slack = frozen.SlackSettings(**_plain(model.slack, "poll")) if model.slack else None
    webhook = frozen.WebhookSettings(**_plain(model.webhook)) if model.webhook else None
    fields = _plain(model, "timeout", without=("slack", "webhook"))
    return frozen.WorkflowSettings(name=name, slack=slack, webhook=webhook, **fields)


def _listen(model: ListenModel) -> frozen.ListenSettings:
    fields = _plain(
        model, "request_timeout", "keep_alive", "session_idle", "drain", without=("auth",)
    )
    auth = frozen.ListenAuth(**_plain(model.auth)) if model.auth else None
    return frozen.ListenSettings(auth=auth, **fields)


def _audit(model: AuditModel) -> frozen.AuditSettings:
    fields = _plain(model, without=("rotate",))
    return frozen.AuditSettings(
        rotate_size=model.rotate.size, rotate_keep=model.rotate.keep, **fields
    )


def _telemetry(model: TelemetryModel) -> frozen.TelemetrySettings:
    otlp = frozen.OtlpSettings(**_plain(model.otlp)) if model.otlp else None
    return frozen.TelemetrySettings(otlp=otlp, **_plain(model, without=("otlp",)))
