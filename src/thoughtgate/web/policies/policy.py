"""The policy page: rules with their hits, explanations, candidates, proposals and past changes."""

import json
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from thoughtgate.policy.call import PROMPT, RESOURCE, TOOL, Call
from thoughtgate.status.policy_trial import CallTrial, PolicyTrial
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.policies.candidate_form import FORM, try_candidate

SHOWN_CHANGES: Final = 50
"""Past changes of the policy that are shown."""

MAX_NAME: Final = 2000
MAX_ARGUMENTS: Final = 20_000
"""Maximum characters of what a person types."""

KINDS: Final = {TOOL: "tools/call", RESOURCE: "resources/read", PROMPT: "prompts/get"}

LEARN_SPANS: Final = {"1d": 86_400.0, "7d": 7 * 86_400.0, "30d": 30 * 86_400.0}


def policy_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the rules in force and what can be done with them."""
    return _page(context, request)


async def try_policy(context: ConsoleContext, request: Request) -> Response:
    """Serve what a candidate would change."""

    def apply(context: ConsoleContext, request: Request, text: str) -> Response:
        policy = context.policy
        trial = policy.try_policy(text, context.approvals.clock()) if policy else None
        return _page(context, request, text=text, trial=trial)

    return await try_candidate(context, request, (FORM,), apply)


def explain_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the verdict of the policy in force on a call that a person typed in."""
    query = request.query_params
    asked = {
        name: query.get(name, "")[:MAX_NAME].strip() for name in ("server", "kind", "name", "by")
    }
    # One character more than allowed, so that ``_typed`` rejects a longer text and never cuts it.
    asked["arguments"] = query.get("arguments", "")[: MAX_ARGUMENTS + 1].strip()
    call = _typed(asked)
    explained: CallTrial | None = None
    if isinstance(call, Call) and context.policy is not None:
        explained = context.policy.explain_call(call, context.approvals.clock())
    fault = call if isinstance(call, str) else ""
    return _page(context, request, asked=asked, fault=fault, explained=explained)


def learn_page(context: ConsoleContext, request: Request) -> Response:
    """Send a config that is proposed from the recorded calls, as a text to review."""
    told = request.query_params.get("since", "7d")
    if told not in LEARN_SPANS or context.policy is None:
        text = f"since must be one of {', '.join(LEARN_SPANS)}."
        return context.render_message(request, 400, "Nothing was proposed", text)
    since = context.approvals.clock() - LEARN_SPANS[told]
    proposal = context.policy.learn(since, told)
    if not proposal:
        text = "The record has no calls in that time."
        return context.render_message(request, 404, "Nothing to propose", text)
    return PlainTextResponse(proposal)


def _page(
    context: ConsoleContext,
    request: Request,
    *,
    text: str = "",
    trial: PolicyTrial | None = None,
    asked: dict[str, str] | None = None,
    fault: str = "",
    explained: CallTrial | None = None,
) -> Response:
    policy = context.policy
    if policy is None:
        why = "This console was started without a config."
        return context.render_message(request, 404, "No policy", why)
    loaded = policy.current()
    return context.render_page(
        request,
        "policy.html",
        groups=policy.rules(),
        loaded=loaded,
        problem=policy.problem,
        changes=context.record.policy_changes(SHOWN_CHANGES),
        limits=loaded.policy.limits,
        spans=LEARN_SPANS,
        kinds=KINDS,
        form=FORM,
        text=text,
        trial=trial,
        asked=asked or {"server": "", "kind": TOOL, "name": "", "arguments": "", "by": ""},
        fault=fault,
        explained=explained,
    )


def _typed(asked: dict[str, str]) -> Call | str:
    """Return the call that a person typed, or what is wrong with it."""
    kind = asked["kind"] or TOOL
    if not asked["name"] or kind not in KINDS:
        return "Enter the name of a tool or prompt, or the URI of a resource."
    if len(asked["arguments"]) > MAX_ARGUMENTS:
        return f"The arguments must have at most {MAX_ARGUMENTS:,} characters."
    try:
        arguments: Any = json.loads(asked["arguments"] or "{}", object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        return f"The arguments are not JSON: {error}."
    if not isinstance(arguments, dict):
        return 'The arguments must be a JSON object, such as {"amount": 5}.'
    return Call(
        asked["server"],
        kind,
        asked["name"],
        arguments,
        method=KINDS[kind],
        principal=asked["by"] or "local",
        facts=frozenset(),
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject duplicate keys, because the gate rejects such a call too."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key appears twice")
    return members
