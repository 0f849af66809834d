"""What each kind of error means and what to do about it, for the pages in ``docs/reference/errors``.

``docs_errors`` renders the pages; a test compares the kinds with the registry.
"""

from typing import Final, NamedTuple


class Advice(NamedTuple):
    """The text of one page."""

    meaning: str
    """What happened, and whether the call ran."""
    action: str
    """What to do, in Markdown."""


_SERVER: Final = (
    "`error.data.cause` says why: [Troubleshooting servers](../../guides/troubleshooting.md#{}) "
    "lists every cause and what to do about it."
)


def _server(kind: str) -> str:
    return _SERVER.format(kind)


ADVICE: Final[dict[str, Advice]] = {
    "parse_error": Advice(
        "The message is not valid JSON, not valid UTF-8, too long or nested too deeply. Nothing was forwarded.",
        "This is a defect of the client: `check` in the error's data names the check that failed. `thoughtgate audit tail --type frame_refused` shows the first bytes of the message.",
    ),
    "invalid_request": Advice(
        "The message is JSON, but not a valid request, or programs could read it in different ways: for example a batch where none is allowed, a duplicate key, or a call without an id. Nothing was forwarded.",
        "`check` in the error's data names the check that failed. Correct the client; [What the shim forwards and refuses](../../guides/shim.md) lists the checks.",
    ),
    "method_not_found": Advice(
        "The gate, or the server behind it, has no such method.",
        "Check the spelling of the method, and which revision of MCP the client and the server use.",
    ),
    "invalid_params": Advice(
        "The parameters do not fit the method: for example arguments that are not an object, a name that is not a string, or a header that contradicts the body. Nothing was forwarded.",
        "Correct the call; `check` in the error's data names what failed.",
    ),
    "task_not_found": Advice(
        "There is no task with this id, or it belongs to another agent.",
        "Use the id from the answer to the call. Tasks are deleted some time after they end; see [Tasks](../../guides/tasks.md).",
    ),
    "internal_error": Advice(
        "The gate failed while it judged the message. It fails closed: nothing was forwarded.",
        "Look at the gate's standard error, and report the defect; include the correlation id.",
    ),
    "upstream_connection_failed": Advice(
        "The gate has no connection to the server, or the connection ended. If it ended during the call, the call may have run.",
        _server("upstream_connection_failed"),
    ),
    "upstream_tls_failed": Advice(
        "The gate could not make a secure connection to the server, so nothing was sent.",
        _server("upstream_tls_failed"),
    ),
    "upstream_unauthorized": Advice(
        "The server refused the gate's credentials. The agent cannot fix this.",
        _server("upstream_unauthorized")
        + " If the server needs a login, run `thoughtgate login SERVER`.",
    ),
    "upstream_bad_response": Advice(
        "The server answered, but not with an answer to the request.",
        _server("upstream_bad_response"),
    ),
    "server_start_failed": Advice(
        "The server could not be started, or did not complete the handshake. The gate tries again after a pause.",
        _server("server_start_failed"),
    ),
    "upstream_timeout": Advice(
        "The server did not answer a request in time.",
        _server("upstream_timeout"),
    ),
    "tool_call_timeout": Advice(
        "The server did not answer the call in time. The call may still run.",
        "Raise `servers.*.timeout` if the tool needs longer. " + _server("upstream_timeout"),
    ),
    "policy_denied": Advice(
        "A Cedar policy forbids the call, or no policy permits it. The call was not made.",
        "`thoughtgate policy explain` shows which policy decided. To permit the call, [change the policy](../../guides/change-the-policy.md).",
    ),
    "content_blocked": Advice(
        "A content check found something in the arguments or in the result that the policy blocks. If it was in the result, the call ran.",
        "`thoughtgate audit show CORRELATION_ID` names the check and the place. [Inspect what calls and results contain](../../guides/inspect-contents.md) shows how to change what is blocked.",
    ),
    "task_expired": Advice(
        "The lifetime of the task is over, and its result was deleted.",
        "Fetch results earlier, or ask for a longer `ttl`; see [Tasks](../../guides/tasks.md).",
    ),
    "task_cancelled": Advice(
        "The task was cancelled before it was complete.",
        "Make the call again if you still need its result.",
    ),
    "approval_rejected": Advice(
        "A person denied the call. It was not made.",
        "Do not repeat the same call; ask the person, or find another way. The agent does not see the reason that the reviewer gave: `thoughtgate audit show CORRELATION_ID` shows it.",
    ),
    "approval_timeout": Advice(
        "Nobody answered the approval request in time. The call was not made.",
        "Make the call again when somebody can answer, or set a longer `timeout` in the workflow: [Require approval before a call runs](../../guides/approvals.md).",
    ),
    "approval_withdrawn": Advice(
        "The approval request ended before a person decided: the caller cancelled or disconnected, or the gate stopped. The call was not made.",
        "Make the call again.",
    ),
    "rate_limited": Advice(
        "More calls were made than the limit allows. This call was not made.",
        "Wait for `retry_after` seconds. `thoughtgate limits list` shows the limits and their state.",
    ),
    "budget": Advice(
        "The budget of this limit is used up. The call was not made.",
        "`retry_after` says when the window ends, if there is one. A person can reset the count with `thoughtgate limits reset ID`.",
    ),
    "duplicate": Advice(
        "The same call was made a short time ago, and the policy allows it only once in that period. The call was not made.",
        "Use the result of the first call, or wait for `retry_after` seconds.",
    ),
    "breaker": Advice(
        "Calls like this one failed too often, so the gate refuses them for a while. The call was not made.",
        "Find out why they fail: `thoughtgate audit query --tool TOOL --status error`. The gate tries again after `retry_after` seconds.",
    ),
    "definition_held": Advice(
        "What the server says about this tool, prompt or resource is new, has changed or looks harmful, and nobody has accepted it yet. The call was not made.",
        "Look at the difference with `thoughtgate tools diff`, then run `thoughtgate tools accept` or `tools refuse`: [When a tool changed](../../guides/when-a-tool-changed.md).",
    ),
    "policy_drift": Advice(
        "After the call was approved, the policy changed and no longer allows it, or the server changed the definition of the tool. The call was not made.",
        "Make the call again; it is checked, and held for approval if necessary, under the new policy.",
    ),
    "insufficient_scope": Advice(
        "The agent's token does not have the scopes that a rule requires. The call was not made. Over HTTP the status is 403.",
        "`scopes` in the error's data lists all the scopes that the call needs, and `missing_scopes` those that the token lacks. Get a token with these scopes: [Say who may connect](../../guides/authentication.md).",
    ),
    "service_unavailable": Advice(
        "The gate cannot take the call now: it is stopping, too many calls are held, or it cannot read its store or write the record. The call was not made.",
        "Wait for `retry_after` seconds, if it is given. `thoughtgate status` shows held calls and degraded gates, and the gate reports the cause on standard error.",
    ),
    "server_not_running": Advice(
        "The server is disabled or was stopped by hand.",
        _server("server_not_running"),
    ),
    "governance_denied": Advice(
        "A rule denies the call, no rule matches and the default is `deny`, or an operator stopped such calls (`gate` is then `stop`). The call was not made.",
        "`thoughtgate audit show CORRELATION_ID` names the rule, and `thoughtgate policy explain` shows why it matches. To allow the call, [change the policy](../../guides/change-the-policy.md), or [resume](../../guides/stop-button.md) what was stopped.",
    ),
    "not_exposed": Advice(
        "There is no such tool, resource or prompt, or the policy hides it. An agent cannot tell the two apart.",
        "List the tools to see what is available. The server's `expose` key in the config decides which tools are shown; `thoughtgate policy explain` says whether one is hidden.",
    ),
}
