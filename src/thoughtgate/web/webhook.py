"""The endpoint for signed decisions that a webhook's system sends to the gate."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thoughtgate.core.approval import Refusal
from thoughtgate.status.webhook_answers import MAX_BODY
from thoughtgate.web.console_context import ConsoleContext, read_body

_STATUS = {"unsigned": 401, "wrong": 400, "refused": 409}


async def decide_by_webhook(context: ConsoleContext, request: Request) -> Response:
    """Verify and apply a signed decision."""
    body = await read_body(request, MAX_BODY)
    if body is None:
        context.refused("webhook decision too large", request.url.path)
        return JSONResponse({"error": "the decision is too large"}, 413)
    outcome = await run_in_threadpool(context.webhooks.decide, body, request.headers)
    if isinstance(outcome, Refusal):
        context.refused(f"webhook: {outcome.text}", request.url.path)
        return JSONResponse({"error": outcome.text}, _STATUS.get(outcome.kind, 409))
    return JSONResponse({"id": outcome.id, "status": outcome.status})
