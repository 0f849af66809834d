"""``thoughtgate policy explain``: show what the policy decides about a call, and why."""

import json
import sys
import time
from collections.abc import Iterable
from typing import Annotated, Any, Final, NoReturn

from typer import Option

from thoughtgate.cli.options import ConfigOption, JsonOption, examples, read_config, require_choice
from thoughtgate.cli.output import write_report
from thoughtgate.errors import UsageError
from thoughtgate.gate.config_files import Loaded
from thoughtgate.policy.call import APPROVE, PROMPT, RESOURCE, TOOL, Call, Verdict
from thoughtgate.policy.evaluation import evaluate, explain
from thoughtgate.policy.facts import ESTABLISHED
from thoughtgate.policy.policy import Step

EXPLAIN_EXAMPLES: Final = examples(
    "thoughtgate policy explain --server github --tool delete_repo",
    "thoughtgate policy explain --server bank --tool transfer --args '{\"amount\": 250}' --json",
    "thoughtgate policy explain --server files --resource file:///etc/passwd",
    "thoughtgate policy explain --server mail --tool send --fact untrusted --fact private",
)

ServerOption = Annotated[str, Option(metavar="ID", help="Server of the call.")]
ToolOption = Annotated[str | None, Option(metavar="NAME", help="Tool to call.")]
ResourceOption = Annotated[str | None, Option(metavar="URI", help="Resource to read.")]
PromptOption = Annotated[str | None, Option(metavar="NAME", help="Prompt to get.")]
ArgumentsOption = Annotated[
    str, Option(metavar="JSON", help="Arguments of the call, as a JSON object.")
]
AnnotationsOption = Annotated[
    str, Option(metavar="JSON", help="Annotations of the tool, as a JSON object.")
]
PrincipalOption = Annotated[str, Option(metavar="NAME", help="Caller, as Cedar policies see it.")]

ScopeOption = Annotated[
    list[str] | None,
    Option(metavar="NAME", help="Scope of the caller's token; may be given several times."),
]

FactOption = Annotated[
    list[str] | None,
    Option(
        metavar="NAME", help="Fact that holds: untrusted or private; may be given several times."
    ),
]

METHODS: Final = {TOOL: "tools/call", RESOURCE: "resources/read", PROMPT: "prompts/get"}
"""The method of the request for each kind of name."""


def explain_command(
    *,
    server: ServerOption,
    tool: ToolOption = None,
    resource: ResourceOption = None,
    prompt: PromptOption = None,
    args: ArgumentsOption = "{}",
    annotations: AnnotationsOption = "{}",
    principal: PrincipalOption = "local",
    scope: ScopeOption = None,
    fact: FactOption = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Show what would happen to a call, gate by gate, and why. Nothing is called."""
    named = {TOOL: tool, RESOURCE: resource, PROMPT: prompt}
    given = [(kind, name) for kind, name in named.items() if name is not None]
    if len(given) != 1:
        raise UsageError("give exactly one of --tool, --resource and --prompt")
    kind, name = given[0]
    for one in fact or ():
        require_choice("--fact", one, ESTABLISHED)
    call = Call(
        server,
        kind,
        name,
        _object("--args", args),
        method=METHODS[kind],
        annotations=_object("--annotations", annotations) or None,
        principal=principal,
        claims={"scope": " ".join(scope)} if scope else None,
        facts=frozenset(fact or ()),
    )
    loaded = read_config(config)
    for warning in loaded.warnings:
        sys.stderr.write(f"Warning: {warning}\n")
    now = time.time()
    steps, verdict = explain(call, loaded.policy, now), evaluate(call, loaded.policy, now)
    limits = [
        limit.id for limit in loaded.policy.limits if limit.selector.covers(server, kind, name)
    ]
    report = _as_json(call, loaded, steps, verdict, limits)
    write_report(report, _lines(call, loaded, steps, verdict, limits), as_json=json_)


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        _refuse(option, f"this is not JSON, from character {error.pos + 1} on")
    except (ValueError, RecursionError) as error:
        _refuse(option, str(error))
    if not isinstance(value, dict):
        _refuse(option, "this is not an object")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject duplicate keys, because the gate rejects such a call too."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key appears twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse(option: str, why: str) -> NoReturn:
    raise UsageError(f"{option} must be a JSON object such as '{{\"amount\": 5}}': {why}")


def _action(verdict: Verdict | None) -> str:
    return "passes" if verdict is None else verdict.action


def _lines(
    call: Call, loaded: Loaded, steps: Iterable[Step], verdict: Verdict, limits: list[str]
) -> Iterable[str]:
    yield f"call        {call.kind} {call.name} of server {call.server}"
    yield f"policy      {loaded.summary} (version {loaded.policy.version})"
    for step in steps:
        yield f"{step.gate:<10}  {_action(step.verdict):<8}  {step.looked_at}"
    yield f"verdict     {_sentence(verdict)}"
    if limits:
        yield f"limits      counted by {', '.join(limits)} if it is forwarded"


def _sentence(verdict: Verdict) -> str:
    parts = [verdict.action]
    if verdict.action == APPROVE:
        parts.append(f"approval through workflow {verdict.workflow}")
    if verdict.kind:
        parts.append(f"the agent gets {verdict.kind}")
    if verdict.missing_scopes:
        parts.append(f"its token needs {verdict.missing_scopes}")
    if verdict.rule:
        parts.append(f"by {verdict.rule}")
    if verdict.reason:
        parts.append(verdict.reason)
    return "; ".join(parts)


def _as_json(
    call: Call, loaded: Loaded, steps: list[Step], verdict: Verdict, limits: list[str]
) -> dict[str, Any]:
    return {
        "call": {name: getattr(call, name) for name in ("server", "kind", "name", "arguments")},
        "policy": {
            "file": loaded.path,
            "sources": [source.as_json() for source in loaded.sources],
            "version": loaded.policy.version,
            "profile": loaded.policy.profile,
        },
        "steps": [
            {"gate": step.gate, "said": _action(step.verdict), "looked_at": step.looked_at}
            for step in steps
        ],
        "verdict": verdict._asdict(),
        "limits": limits,
    }
