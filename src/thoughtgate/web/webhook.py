"""The endpoint for signed decisions that a webhook's system sends to the gate."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thoughtgate.core.approval import Refusal
from thoughtgate.status.webhook_answers import MAX_BODY, WebhookAnswers
from thoughtgate.web.console_context import ConsoleContext

_STATUS = {"unsigned": 401, "wrong": 400, "refused": 409}


class WebhookEndpoint:
    """Accepts decisions at ``POST /webhook/decision``."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._answers = WebhookAnswers(context.approvals, context.webhooks)

    async def decide(self, request: Request) -> Response:
        """Verify and apply a signed decision."""
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_BODY:
                self._context.refused("webhook decision too large", request.url.path)
                return JSONResponse({"error": "the decision is too large"}, 413)
        outcome = await run_in_threadpool(self._answers.decide, bytes(data), request.headers)
        if isinstance(outcome, Refusal):
            self._context.refused(f"webhook: {outcome.text}", request.url.path)
            return JSONResponse({"error": outcome.text}, _STATUS.get(outcome.kind, 409))
        return JSONResponse({"id": outcome.id, "status": outcome.status})
