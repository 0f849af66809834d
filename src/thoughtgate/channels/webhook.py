"""Approval requests by webhook: signed requests out, signed decisions back.

Every request is a POST to the workflow's URL with one JSON object: ``approval_requested``
sends the approval request, ``approval_poll`` asks for its status, ``approval_settled`` reports
the outcome. A decision comes in the response to one of the first two, signed with the nonce of
that request, or in a separate request to the gate (``status.webhook_answers``). Any other
response with status 200 or 202 means "not yet".
"""

import http.client
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

from thoughtgate.channels.approval_view import approval_object
from thoughtgate.channels.delivery import DeliveryError, RequestGoneError
from thoughtgate.channels.webhook_decision import MAX_BODY, NAME, WebhookDecision, parse_decision
from thoughtgate.channels.webhook_signature import (
    QUESTION,
    REPLY,
    read_signature,
    sign,
    signature_error,
)
from thoughtgate.core.approval import Approval, Vote, is_shown_whole, shown_lines

TIMEOUT_S: Final = 10.0
"""Timeout of one request to the webhook."""

POLL_S: Final = 5.0

_LATER: Final = (202, 204)
_GONE: Final = (404, 410)
"""The webhook no longer knows the approval request."""

_NONCE_BYTES: Final = 16

__all__ = ["NAME", "WebhookClient", "WebhookTarget"]


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """A workflow's webhook URL and the key that both sides share."""

    url: str
    key: bytes
    poll_s: float = POLL_S


class WebhookClient:
    """The delivery client of one webhook. Used by one thread only."""

    def __init__(
        self,
        target: WebhookTarget,
        *,
        refused: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``refused`` is called with the reason when a decision fails verification."""
        self._target = target
        self._refused = refused
        self._clock = clock
        self._early: dict[str, list[Vote]] = {}
        """Decisions that came in the response to ``approval_requested``, until the next poll."""
        self.poll_s = target.poll_s

    def send_request(self, approval: Approval) -> str:
        """Send the approval request; the response may already contain the decision."""
        votes = self._post("approval_requested", approval)
        if votes:
            self._early[approval.id] = votes
        return approval.id

    def poll_votes(self, approval: Approval, handle: str) -> Sequence[Vote]:
        """Ask for the request's status and return the decision, if there is one."""
        early = self._early.pop(handle, None)
        return early if early is not None else self._post("approval_poll", approval)

    def send_outcome(self, approval: Approval, handle: str) -> None:
        """Report the outcome."""
        self._early.pop(handle, None)
        self._post("approval_settled", approval)

    def _post(self, kind: str, approval: Approval) -> list[Vote]:
        # The decision must repeat the digest, so it cannot be applied to a different call.
        shown = {
            **approval_object(approval),
            # For a receiver that shows the call to people: every character is visible in it.
            "text": "\n".join(shown_lines(approval)),
            "can_approve": is_shown_whole(approval, NAME),
        }
        body = json.dumps({"type": kind, "approval": shown}).encode()
        nonce = secrets.token_hex(_NONCE_BYTES)
        signed = sign(self._target.key, QUESTION, body, nonce, self._clock())
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked with the config
            self._target.url,
            data=body,
            headers={"Content-Type": "application/json", **signed.headers()},
        )
        status, headers, response = _send(request)
        if status in _LATER or not response or kind == "approval_settled":
            return []
        return self._verified_votes(approval, response, headers, nonce)

    def _verified_votes(
        self, approval: Approval, response: bytes, headers: dict[str, str], nonce: str
    ) -> list[Vote]:
        """Return the vote in a response; one that is not signed for this request is ignored."""
        now = self._clock()
        decision = parse_decision(response, now)
        # Any other response, such as an acknowledgement, means that nobody has decided yet.
        if not isinstance(decision, WebhookDecision):
            return []
        signature = read_signature(headers)
        problem = signature_error(self._target.key, REPLY + nonce, response, signature, now)
        if not problem and (decision.approval, decision.digest) != (approval.id, approval.digest):
            problem = "it is for a different call"
        if problem:
            self._refused(f"ignored the webhook's decision on {approval.id}: {problem}")
            return []
        return [decision.vote]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: an approval request only goes to the URL in the config."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Do not follow the redirect."""


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


def _send(request: urllib.request.Request) -> tuple[int, dict[str, str], bytes]:
    """Send a request and return the status, headers and body of the response.

    Raises:
        DeliveryError: the request failed and may be tried again.
        RequestGoneError: the webhook no longer knows the approval request.
    """
    try:
        with _OPENER.open(request, timeout=TIMEOUT_S) as response:
            return response.status, dict(response.headers.items()), _read_body(response)
    except urllib.error.HTTPError as error:
        with error:
            after = str(error.headers.get("Retry-After", ""))
            if error.code in _GONE:
                raise RequestGoneError from None
            raise DeliveryError(
                f"the webhook answered HTTP {error.code}",
                float(after) if after.isdecimal() else 0.0,
            ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DeliveryError(f"the webhook cannot be reached: {type(error).__name__}") from None


def _read_body(response: IO[bytes]) -> bytes:
    data = response.read(MAX_BODY + 1)
    if len(data) > MAX_BODY:
        raise DeliveryError(f"the webhook's response is too long (limit: {MAX_BODY:,} bytes)")
    return data
