"""``thoughtgate policy``: explain what the rules say of a call, and find mistakes in them."""

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from thoughtgate.analysis.lint import ERROR, LintFinding, lint
from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples
from thoughtgate.cli.policy.diff import DIFF_EXAMPLES, diff_command
from thoughtgate.cli.policy.expectations import TEST_EXAMPLES, expectations_command
from thoughtgate.cli.policy.learn import LEARN_EXAMPLES, learn_command
from thoughtgate.cli.policy.replay import REPLAY_EXAMPLES, replay_command
from thoughtgate.errors import EXIT_CONFIG, ConfigError, UsageError
from thoughtgate.gate.config_files import Loaded, load_configuration, load_document
from thoughtgate.policy.call import APPROVE, PROMPT, RESOURCE, TOOL, Call, Verdict
from thoughtgate.policy.policy import Policy, Step, explain

app = command_app(
    "Explain what the rules say of a call, find mistakes in them, and try others on the record.",
    examples(
        "thoughtgate policy explain --server github --tool delete_repo",
        "thoughtgate policy lint -c thoughtgate.yaml",
        "thoughtgate policy replay --since 7d -c candidate.yaml",
    ),
)

ServerOption = Annotated[str, typer.Option("--server", metavar="ID", help="Server of the call.")]
ToolOption = Annotated[
    str | None, typer.Option("--tool", metavar="NAME", help="Tool that is called.")
]
ResourceOption = Annotated[
    str | None, typer.Option("--resource", metavar="URI", help="Resource that is read.")
]
PromptOption = Annotated[
    str | None, typer.Option("--prompt", metavar="NAME", help="Prompt that is fetched.")
]
ArgumentsOption = Annotated[
    str, typer.Option("--args", metavar="JSON", help="Arguments, a JSON object.")
]
AnnotationsOption = Annotated[
    str,
    typer.Option(
        "--annotations", metavar="JSON", help="What the server says of the tool, a JSON object."
    ),
]
PrincipalOption = Annotated[
    str, typer.Option("--principal", metavar="NAME", help="Who calls, as Cedar policies see it.")
]

_METHODS = {TOOL: "tools/call", RESOURCE: "resources/read", PROMPT: "prompts/get"}


@app.callback()
def policy() -> None:
    """Explain what the rules say of a call; find mistakes in the rules."""


app.command("replay", epilog=REPLAY_EXAMPLES)(replay_command)
app.command("test", epilog=TEST_EXAMPLES)(expectations_command)
app.command("learn", epilog=LEARN_EXAMPLES)(learn_command)
app.command("diff", epilog=DIFF_EXAMPLES)(diff_command)


_EXPLAIN_EXAMPLES = examples(
    "thoughtgate policy explain --server github --tool delete_repo",
    "thoughtgate policy explain --server bank --tool transfer --args '{\"amount\": 250}' --json",
    "thoughtgate policy explain --server files --resource file:///etc/passwd",
)


@app.command("explain", epilog=_EXPLAIN_EXAMPLES)
def explain_command(
    *,
    server: ServerOption,
    tool: ToolOption = None,
    resource: ResourceOption = None,
    prompt: PromptOption = None,
    args: ArgumentsOption = "{}",
    annotations: AnnotationsOption = "{}",
    principal: PrincipalOption = "local",
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Say what would happen to a call, gate by gate, and why. Nothing is called."""
    named = {TOOL: tool, RESOURCE: resource, PROMPT: prompt}
    given = [(kind, name) for kind, name in named.items() if name is not None]
    if len(given) != 1:
        raise UsageError("name one of --tool, --resource and --prompt")
    kind, name = given[0]
    call = Call(
        server,
        kind,
        name,
        _object("--args", args),
        method=_METHODS[kind],
        annotations=_object("--annotations", annotations) or None,
        principal=principal,
    )
    loaded = _load(config)
    steps = explain(call, loaded.policy, time.time())
    limits = [
        limit.id for limit in loaded.policy.limits if limit.selector.covers(server, kind, name)
    ]
    if json_:
        sys.stdout.write(json.dumps(_explained(call, loaded, steps, limits), indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(_told(call, loaded, steps, limits)) + "\n")


_LINT_EXAMPLES = examples(
    "thoughtgate policy lint -c thoughtgate.yaml",
    "thoughtgate policy lint -c thoughtgate.yaml --json",
)


@app.command("lint", epilog=_LINT_EXAMPLES)
def lint_command(*, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """Find rules that can never match, unknown servers and workflows, and broken Cedar files.

    Exit code 1 when there is an error; warnings alone are fine.
    """
    findings = _lint(config)
    if json_:
        listed = [{"level": one.level, **one.problem._asdict()} for one in findings]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
    else:
        for one in findings:
            sys.stdout.write(f"{one.level}: {one.problem}\n")
    errors = sum(one.level == ERROR for one in findings)
    sys.stderr.write(f"{errors} errors, {len(findings) - errors} warnings.\n")
    if errors:
        raise typer.Exit(EXIT_CONFIG)


def _load(config: str | None) -> Loaded:
    loaded = load_configuration(config, os.environ, str(Path.cwd()))
    for warning in loaded.warnings:
        sys.stderr.write(f"Warning: {warning}\n")
    return loaded


def _lint(config: str | None) -> list[LintFinding]:
    try:
        loaded = _load(config)
    except ConfigError as error:
        return [LintFinding(ERROR, problem) for problem in error.problems]
    return lint(loaded.settings, load_document(loaded.path), loaded.path or "")


def _object(flag: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _refuse(flag, str(error))
    if not isinstance(value, dict):
        _refuse(flag, "it is something else")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice, as the gate refuses such a call."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands there twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse(flag: str, why: str) -> NoReturn:
    raise UsageError(f"{flag} must be a JSON object such as '{{\"amount\": 5}}': {why}")


def _said(verdict: Verdict | None) -> str:
    return "passes" if verdict is None else verdict.action


def _told(call: Call, loaded: Loaded, steps: Iterable[Step], limits: list[str]) -> Iterable[str]:
    policy_: Policy = loaded.policy
    yield f"call        {call.kind} {call.name} of server {call.server}"
    yield f"policy      {loaded.path or 'built-in starter policy'} (version {policy_.version}, {policy_.profile})"
    for step in steps:
        yield f"{step.gate:<10}  {_said(step.verdict):<8}  {step.looked_at}"
        if step.verdict is not None:
            yield f"verdict     {_sentence(step.verdict)}"
    if limits:
        yield f"limits      counted by {', '.join(limits)} once it is forwarded"


def _sentence(verdict: Verdict) -> str:
    parts = [verdict.action]
    if verdict.action == APPROVE:
        parts.append(f"workflow {verdict.workflow} is asked")
    if verdict.kind:
        parts.append(f"the agent is told {verdict.kind}")
    if verdict.rule:
        parts.append(f"by {verdict.rule}")
    if verdict.reason:
        parts.append(verdict.reason)
    return "; ".join(parts)


def _explained(call: Call, loaded: Loaded, steps: list[Step], limits: list[str]) -> dict[str, Any]:
    verdict = steps[-1].verdict
    return {
        "call": {
            "server": call.server,
            "kind": call.kind,
            "name": call.name,
            "arguments": call.arguments,
        },
        "policy": {
            "file": loaded.path,
            "version": loaded.policy.version,
            "profile": loaded.policy.profile,
        },
        "steps": [
            {"gate": step.gate, "said": _said(step.verdict), "looked_at": step.looked_at}
            for step in steps
        ],
        "verdict": verdict._asdict() if verdict else None,
        "limits": limits,
    }
