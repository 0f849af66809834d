"""The effect of changed settings other than rules and limits.

A table has a function for every setting; most only report that the setting changes. For settings
that protect calls, the record or approvals, the effect is reported as loosening or tightening. If
it cannot be determined, as for another program under the same name, it is ``cannot_be_told``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from thoughtgate.analysis.rule_changes import CHANGES, LOOSENS, TIGHTENS, UNTOLD, PolicyChange
from thoughtgate.config.checks import is_loopback
from thoughtgate.config.content_settings import ArgumentSettings, ResultSettings
from thoughtgate.config.listen_settings import ListenAuth, ListenSettings
from thoughtgate.config.settings import ServerSettings, Settings, WorkflowSettings
from thoughtgate.policy.definitions import MODES, WARN
from thoughtgate.policy.inspection.content_policy import TREATMENTS

Judge: TypeAlias = Callable[[Any, Any], str]
"""Returns the effect of replacing one value with another; empty for none."""

JUDGED_ELSEWHERE: Final = frozenset({"profile", "default", "rules", "limits", "servers.expose"})
"""Settings that ``analysis.comparison`` compares by their effect."""

_HIDDEN: Final = frozenset({"env", "headers", "options", "resource"})
"""Settings whose values may be secrets: only their names are reported."""

_THERE: Final = "there"
_GONE: Final = "-"


def compare_settings(old: Settings, new: Settings) -> Iterator[PolicyChange]:
    """Yield the changes other than those of rules and limits."""
    yield from _approvals(old, new)
    yield from _cedar(old, new)
    yield from _servers(old, new)
    yield from _namespaces(old, new)
    yield from _listen(old.listen, new.listen)
    for name in _names_of(old):
        if name not in JUDGED_ELSEWHERE | _APART:
            yield from _compared(name, name, getattr(old, name), getattr(new, name))


def _approvals(old: Settings, new: Settings) -> Iterator[PolicyChange]:
    for name in sorted(old.approval.keys() & new.approval.keys()):
        one, other = old.approval[name], new.approval[name]
        for found in _compared(f"approval.{name}", "approval", one, other):
            in_time = found.subject == f"approval.{name}.timeout_s"
            yield found._replace(effect=_timeout_effect(one, other)) if in_time else found


def _timeout_effect(old: WorkflowSettings, new: WorkflowSettings) -> str:
    """Return the effect of a changed timeout; one that approves loosens if it comes sooner."""
    if {old.on_timeout, new.on_timeout} != {"approve"}:
        return CHANGES
    return LOOSENS if new.timeout_s < old.timeout_s else TIGHTENS


def _listen(old: ListenSettings, new: ListenSettings) -> Iterator[PolicyChange]:
    for found in _compared("listen", "listen", old, new):
        # If the gate listens on other interfaces, an empty list accepts every host name.
        is_open = found.subject == "listen.hosts" and not is_loopback(new.host)
        yield found._replace(effect=_chosen(old.hosts, new.hosts)) if is_open else found


def _cedar(old: Settings, new: Settings) -> Iterator[PolicyChange]:
    """Yield added, removed and changed Cedar files; probes show only part of their effect."""
    before = {PurePath(source.file).name: source.text for source in old.cedar}
    after = {PurePath(source.file).name: source.text for source in new.cedar}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            words = (
                _GONE if name not in before else _THERE,
                "gone" if name not in after else "other text",
            )
            yield PolicyChange(UNTOLD, f"cedar {name}", *words)


def _servers(old: Settings, new: Settings) -> Iterator[PolicyChange]:
    """Yield added, removed and changed servers; probes compare what they expose."""
    for name in sorted(old.servers.keys() | new.servers.keys()):
        one, other = old.servers.get(name), new.servers.get(name)
        if one is None:
            # Nobody knows which tools a new server offers, and so what the rules decide about them.
            effect = CHANGES if name == "*" else UNTOLD
            yield PolicyChange(effect, f"servers.{name}", _GONE, _THERE)
            yield from _of_definitions(name, ServerSettings(name), new.servers[name])
        elif other is None:
            yield PolicyChange(CHANGES, f"servers.{name}", _THERE, _GONE)
            yield from _of_definitions(name, one, ServerSettings(name))
        else:
            yield from _compared(
                f"servers.{name}",
                "servers",
                _with_contents(one, old.servers),
                _with_contents(other, new.servers),
            )


def _with_contents(server: ServerSettings, servers: Mapping[str, ServerSettings]) -> ServerSettings:
    """Return a server with the content settings that apply to it: those of ``*`` if it has none."""
    others = servers.get("*", server)
    return replace(
        server,
        results=server.results if server.results is not None else others.results,
        arguments=server.arguments if server.arguments is not None else others.arguments,
    )


def _of_definitions(name: str, old: ServerSettings, new: ServerSettings) -> Iterator[PolicyChange]:
    """Yield what a new or removed ``*`` changes for the servers that have no entry of their own."""
    if name == "*":
        for key in ("definitions", "silence", "results", "arguments"):
            values = getattr(old, key), getattr(new, key)
            yield from _compared(f"servers.{name}.{key}", f"servers.{key}", *values)


def _namespaces(old: Settings, new: Settings) -> Iterator[PolicyChange]:
    for name in sorted(old.namespaces.keys() | new.namespaces.keys()):
        before, after = old.namespaces.get(name), new.namespaces.get(name)
        if before is None or after is None:
            words = (_GONE, _THERE) if before is None else (_THERE, _GONE)
            yield PolicyChange(UNTOLD, f"namespaces.{name}", *words)
        else:
            yield from _compared(f"namespaces.{name}", "namespaces", before, after)


def _compared(subject: str, key: str, old: Any, new: Any) -> Iterator[PolicyChange]:
    """Yield the differences between two values of a setting, member by member if possible."""
    if old == new:
        return
    if isinstance(old, ListenAuth) and isinstance(new, ListenAuth) and old.type != new.type:
        # The other members depend on the type of authentication and change with it.
        yield from _compared(f"{subject}.type", f"{key}.type", old.type, new.type)
    elif is_dataclass(old) and is_dataclass(new) and key not in JUDGED_WHOLE:
        for name in _names_of(old):
            if f"{key}.{name}" not in JUDGED_ELSEWHERE:
                shown = name.replace("rotate_", "rotate.")
                values = getattr(old, name), getattr(new, name)
                yield from _compared(f"{subject}.{shown}", f"{key}.{name}", *values)
    elif key.rpartition(".")[2] in _HIDDEN:
        yield from _hidden(subject, EFFECTS[key](old, new), old, new)
    else:
        effect = EFFECTS[key](old, new)
        if effect:
            yield PolicyChange(effect, subject, _plain(old), _plain(new))


def _hidden(
    subject: str, effect: str, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[PolicyChange]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            before = _THERE if name in old else _GONE
            after = _GONE if name not in new else "other value" if name in old else _THERE
            yield PolicyChange(effect, f"{subject}.{name}", before, after)


def _names_of(settings: Any) -> list[str]:
    return sorted(field.name for field in fields(settings))


def _plain(value: Any) -> Any:
    """Return a value in JSON form."""
    if is_dataclass(value):
        shown = {name: _plain(getattr(value, name)) for name in _names_of(value)}
        return {name: inner for name, inner in shown.items() if inner not in ("", [], {}, None)}
    if isinstance(value, Mapping):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _changes(_: Any, __: Any) -> str:
    return CHANGES


def _untold(_: Any, __: Any) -> str:
    return UNTOLD


def _looser(*values: Any) -> Judge:
    """Return a function for a setting for which these values are the looser ones."""
    return lambda old, new: (
        CHANGES if (old in values) == (new in values) else LOOSENS if new in values else TIGHTENS
    )


def _guard(old: Any, new: Any) -> str:
    """Judge a setting that protects as long as it is present."""
    return TIGHTENS if not old else LOOSENS if not new else UNTOLD


def _fewer(old: float, new: float) -> str:
    return LOOSENS if new < old else TIGHTENS


def _shorter(old: float, new: float) -> str:
    """Judge a time for which something is kept; 0 is forever."""
    return _fewer(old or float("inf"), new or float("inf"))


def _members(old: Iterable[str], new: Iterable[str]) -> str:
    """Judge a list of accepted values; its order does not matter."""
    before, after = set(old), set(new)
    return LOOSENS if after - before else TIGHTENS if before - after else ""


def _more(old: tuple[Any, ...], new: tuple[Any, ...]) -> str:
    """Judge a list of exceptions: another one loosens; its order does not matter."""
    if any(one not in old for one in new):
        return LOOSENS
    return TIGHTENS if any(one not in new for one in old) else ""


def _masked(old: Iterable[str], new: Iterable[str]) -> str:
    """Judge what is masked; its order does not matter.

    Masking more hides calls from reviewers and from the record, masking less shows secrets.
    """
    return LOOSENS if set(old) != set(new) else ""


def _definitions(old: str, new: str) -> str:
    """Judge what happens to changed definitions: pin is stricter than warn, and warn than off."""
    before, after = MODES.index(old or WARN), MODES.index(new or WARN)
    return CHANGES if before == after else LOOSENS if after > before else TIGHTENS


def _treatments(old: ResultSettings | None, new: ResultSettings | None) -> str:
    """Judge what happens to results: it loosens if a check or tier is treated less strictly."""
    before, after = _by_check(old), _by_check(new)
    if before == after:
        return CHANGES
    names = before.keys() | after.keys()
    if all(after.get(name, -1) >= before.get(name, -1) for name in names):
        return TIGHTENS
    return LOOSENS


def _by_check(results: ResultSettings | None) -> dict[str, int]:
    """Return the strictest treatment of each check, glob or tier that is named, as a number."""
    return {
        name: number
        for number, treatment in enumerate(TREATMENTS)
        for name in (getattr(results, treatment) if results is not None else ())
    }


def _secrets(old: ArgumentSettings | None, new: ArgumentSettings | None) -> str:
    before, after = _strictness(old), _strictness(new)
    if before == after:
        return CHANGES
    blocks, names = after
    return TIGHTENS if blocks >= before[0] and names >= before[1] else LOOSENS


def _strictness(arguments: ArgumentSettings | None) -> tuple[bool, frozenset[str]]:
    if arguments is None:
        return False, frozenset()
    return arguments.block_secrets, frozenset(arguments.record)


def _chosen(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """Judge a list of accepted values that accepts everything if it is empty."""
    if old and new:
        return _members(old, new)
    return TIGHTENS if new else LOOSENS


def _host(old: str, new: str) -> str:
    if is_loopback(old) == is_loopback(new):
        return CHANGES if is_loopback(new) else UNTOLD
    return TIGHTENS if is_loopback(new) else LOOSENS


def _auth_type(old: str, new: str) -> str:
    parts = {"bearer", "ip_allowlist"}
    if old == "both" and new in parts:
        return LOOSENS
    return TIGHTENS if new == "both" and old in parts else UNTOLD


JUDGED_WHOLE: Final = frozenset({"servers.results", "servers.arguments"})
"""Settings whose members have no separate effect, because the strictest one counts."""


def _fewer_facts(old: Iterable[str], new: Iterable[str]) -> str:
    """Judge what establishes facts: fewer of them loosen; the order does not matter."""
    return _members(new, old)


def _outbound(old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> str:
    """Judge which tools send data out: without a list, all of them do."""
    if old is None or new is None:
        return LOOSENS if old is None else TIGHTENS
    return _fewer_facts(old, new)


_APART: Final = frozenset({"approval", "cedar", "listen", "servers", "namespaces"})
"""Settings that are compared by name or by special functions."""

_JUDGES: Final[tuple[tuple[Judge, str, str], ...]] = (
    (_changes, "servers.", "id name eager idle_s timeout_s start_timeout_s connect_timeout_s"),
    (_changes, "servers.", "transport max_answer"),
    (_changes, "approval.", "name timeout_s slack.mention slack.poll_s"),
    (_changes, "listen.", "port public_url admin_port request_timeout_s keep_alive_s drain_s"),
    (
        _changes,
        "listen.",
        "lame_duck_s max_body max_concurrent max_batch max_sessions session_idle_s workers",
    ),
    (_changes, "holds.", "connection principal total"),
    (_changes, "notify.", "desktop terminal agent"),
    (_changes, "tasks.", "ttl_s max_ttl_s poll_s per_principal total"),
    (_changes, "telemetry.", "log_level log_format metrics"),
    (_changes, "telemetry.otlp.", "sample_rate resource service_name"),
    (_changes, "", "console.port console.public_url console.sign_in.sign_out_url separator"),
    # Traces name the tools that are called, and another place may receive them.
    (_untold, "telemetry.", "otlp otlp.endpoint otlp.headers"),
    # A different store has different approvals and grants; a different file may not be kept;
    # different keys accept different sessions and prompts.
    (_untold, "", "store audit.file keys.file keys.tokens_env"),
    (_fewer, "audit.", "preview rotate_size rotate_keep"),
    (_shorter, "audit.", "retain_s"),
    (_looser(False), "audit.", "ledger fsync"),
    (_looser("auto"), "", "reload"),
    # Another program, place or credential under the same name.
    (_untold, "servers.", "command args env cwd url headers proxy auth auth.type auth.token_env"),
    (_untold, "servers.auth.", "client_id client_metadata_url client_secret_env"),
    (_untold, "servers.auth.", "grant issuer scopes"),
    (_untold, "servers.tls.", "ca client_cert client_key"),
    # Nobody knows which reviewers approve more readily.
    (_untold, "approval.", "channel slack webhook options webhook.url webhook.secret_env"),
    (_untold, "approval.slack.", "channel token_env api_url approve_reaction deny_reaction"),
    (_untold, "", "listen.auth.principal_claim default_namespace server_requests"),
    (_guard, "listen.", "auth auth.token_env auth.jwks_url auth.issuer auth.audience"),
    (_guard, "listen.", "auth.ca tls.client_ca"),
    (_untold, "listen.tls.", "cert key"),
    # Another issuer, audience, header or claim vouches for other reviewers.
    (_guard, "console.", "sign_in tls"),
    (_untold, "console.sign_in.", "header name_claim groups_claim"),
    (_untold, "console.sign_in.jwt.", "issuer audience jwks_url ca"),
    (_untold, "console.tls.", "certificate key"),
    (_guard, "audit.", "sign_key_env"),
    (_looser(True), "", "servers.enabled console.enabled manager_tools"),
    (_looser(True), "approval.", "allow_elicitation remember"),
    (_looser("shared"), "servers.", "isolation"),
    (_looser("approve"), "approval.", "on_timeout"),
    (_looser("once_per_tool"), "approval.", "ask"),
    (_fewer, "approval.", "required"),
    (_fewer, "facts.", "window_s"),
    (_fewer_facts, "servers.", "provides"),
    (_outbound, "servers.", "outbound"),
    (_chosen, "approval.", "approvers"),
    (_looser("http"), "listen.", "transport"),
    (_host, "listen.", "host admin_host"),
    (_auth_type, "listen.", "auth.type"),
    (_host, "console.", "host"),
    (_members, "listen.", "auth.allow origins hosts"),
    (_chosen, "console.sign_in.", "trusted_proxies"),
    (_looser("stderr", "stdout"), "audit.", "sink"),
    (_looser("continue"), "audit.", "on_failure"),
    (_masked, "redact.", "names patterns"),
    (_definitions, "servers.", "definitions"),
    (_more, "servers.", "silence"),
    (_treatments, "servers.", "results"),
    (_secrets, "servers.", "arguments"),
    (_untold, "servers.silence.", "check tool reason"),
    (_members, "", "namespaces"),
)

EFFECTS: Final = {
    f"{section}{name}": judge for judge, section, names in _JUDGES for name in names.split()
}
"""The function for each setting."""
