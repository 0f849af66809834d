"""Asking by webhook: signed requests out, signed answers back.

Every request is a POST to the workflow's URL with one JSON object: ``approval_requested``
puts the question, ``approval_poll`` asks how it stands, ``approval_settled`` tells the
outcome. A decision stands in the answer to one of the first two, signed with the request's
own nonce, or is sent to the gate by itself (``status.webhook_answers``). Any other answer
with a status of 200 or 202 means: not yet.
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

from thoughtgate.channels.delivery import Gone, Trouble
from thoughtgate.channels.webhook_decision import MAX_BODY, NAME, RemoteDecision, parse_decision
from thoughtgate.channels.webhook_signature import QUESTION, REPLY, sign, signed_by, why_not
from thoughtgate.core.approval import Approval, Vote
from thoughtgate.core.approval_view import approval_object

TIMEOUT_S: Final = 10.0
"""How long the webhook may take for one answer."""

POLL_S: Final = 5.0

_OK: Final = 200
_LATER: Final = (202, 204)
_GONE: Final = (404, 410)
"""The question is not known there any more."""

_NONCE_BYTES: Final = 16

__all__ = ["NAME", "WebhookErrand", "WebhookPlace"]


@dataclass(frozen=True, slots=True)
class WebhookPlace:
    """Where a workflow asks, and the key that both sides hold."""

    url: str
    key: bytes
    poll_s: float = POLL_S


class WebhookErrand:
    """Speaks to one webhook. Used by one thread."""

    def __init__(
        self,
        place: WebhookPlace,
        *,
        refused: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Tell ``refused`` of answers that are not what they say they are."""
        self._place = place
        self._refused = refused
        self._clock = clock
        self._early: dict[str, list[Vote]] = {}
        """Decisions that came with the answer to the question itself."""
        self.poll_s = place.poll_s

    def ask(self, approval: Approval) -> str:
        """Put the question; the answer may hold the decision already."""
        votes = self._post("approval_requested", approval)
        if votes:
            self._early[approval.id] = votes
        return approval.id

    def look(self, approval: Approval, handle: str) -> Sequence[Vote]:
        """Ask how the question stands."""
        early = self._early.pop(handle, None)
        return early if early is not None else self._post("approval_poll", approval)

    def settle(self, approval: Approval, handle: str) -> None:
        """Tell the outcome."""
        self._early.pop(handle, None)
        self._post("approval_settled", approval)

    def _post(self, kind: str, approval: Approval) -> list[Vote]:
        body = json.dumps({"type": kind, "approval": _told(approval)}).encode()
        nonce = secrets.token_hex(_NONCE_BYTES)
        signed = sign(self._place.key, QUESTION, body, nonce, self._clock())
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked with the config
            self._place.url,
            data=body,
            headers={"Content-Type": "application/json", **signed.headers()},
        )
        status, headers, answer = _send(request)
        if status in _LATER or not answer or kind == "approval_settled":
            return []
        return self._read(approval, answer, headers, nonce)

    def _read(
        self, approval: Approval, answer: bytes, headers: dict[str, str], nonce: str
    ) -> list[Vote]:
        """Return the vote in an answer; what is not signed for this request is none."""
        now = self._clock()
        decision = parse_decision(answer, now)
        if not isinstance(decision, RemoteDecision):
            return []
        doubt = why_not(self._place.key, REPLY + nonce, answer, signed_by(headers), now)
        if not doubt and (decision.approval, decision.digest) != (approval.id, approval.digest):
            doubt = "about another call"
        if doubt:
            self._refused(f"the webhook's answer about {approval.id} does not count: {doubt}")
            return []
        return [decision.vote]


def _told(approval: Approval) -> dict[str, Any]:
    return {**approval_object(approval), "digest": approval.digest}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A question goes where the config says and nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none."""


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


def _send(request: urllib.request.Request) -> tuple[int, dict[str, str], bytes]:
    """Send a request; what goes wrong becomes ``Trouble`` or ``Gone``."""
    try:
        with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
            return answer.status, dict(answer.headers.items()), _read_some(answer)
    except urllib.error.HTTPError as error:
        with error:
            after = str(error.headers.get("Retry-After", ""))
            if error.code in _GONE:
                raise Gone from None
            raise Trouble(
                f"it answered {error.code}", float(after) if after.isdecimal() else 0.0
            ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Trouble(f"it cannot be reached: {type(error).__name__}") from None


def _read_some(answer: IO[bytes]) -> bytes:
    data = answer.read(MAX_BODY + 1)
    if len(data) > MAX_BODY:
        raise Trouble("its answer is too long")
    return data
