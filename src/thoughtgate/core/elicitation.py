"""Asking the person in front of the agent, through the agent's own prompt.

Up to 2025-11-25 the gate sends ``elicitation/create`` under an id that nobody else can
know, and the agent's answer to it never reaches the server. Only where the client said
that it can ask, and only for workflows that allow it: a client may answer without asking
anybody. Pure and small: every shim loads it.
"""

from typing import Any, Final

from thoughtgate.core.commands import Command, PersonAnswered, ToAgent
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.replies import render, render_cancelled

METHOD: Final = "elicitation/create"

ID_PREFIX: Final = "tg-ask-"
"""Begins the id of every prompt; the rest is random, so that no server can ask under it."""

MAX_REASON: Final = 500

ELSEWHERE: Final = "it was answered elsewhere, or nobody waits for it any more"

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Let this call run?",
            "enum": ["approve", "deny"],
        },
        "reason": {"type": "string", "title": "Reason", "description": "It goes on record."},
    },
    "required": ["decision"],
}
"""Flat, of strings only: what every revision that knows elicitation can show."""


class Elicitations:
    """The prompts of one session."""

    def __init__(self) -> None:
        self._can_ask = False
        self._asked: dict[RequestId, str] = {}
        """Calls by the id of the prompt that asks about them."""

    def learn(self, method: str, params: dict[str, Any]) -> None:
        """Note from ``initialize`` whether the client can show a form."""
        if method != "initialize":
            return
        capabilities = params.get("capabilities")
        said = capabilities.get("elicitation") if type(capabilities) is dict else None
        # 2025-11-25, elicitation: an empty object means forms; so did every one before it.
        self._can_ask = type(said) is dict and (not said or "form" in said)

    def ask(self, key: RequestId, ident: str, call_id: str, text: str) -> list[Command]:
        """Ask about a held call; nothing when the client cannot."""
        if not self._can_ask or not ident.startswith(ID_PREFIX):
            return []
        self._asked[ident] = call_id
        params = {"message": text, "requestedSchema": SCHEMA}
        frame = render({"jsonrpc": "2.0", "id": ident, "method": METHOD, "params": params})
        return [ToAgent(frame, key)]

    def take(self, message: Message, at: float) -> list[Command] | None:
        """Return what an answer to a prompt comes to; None when it answers none of ours."""
        call_id = self._asked.pop(message.id, None) if message.id is not None else None
        if call_id is None:
            return None
        result = message.body.get("result")
        answer = _decision(result if type(result) is dict else {})
        return [] if answer is None else [PersonAnswered(call_id, *answer, at)]

    def close(self, call_id: str) -> list[Command]:
        """The call was decided or given up: take the prompt back."""
        idents = [ident for ident, asked in self._asked.items() if asked == call_id]
        for ident in idents:
            del self._asked[ident]
        return [ToAgent(render_cancelled(ident, ELSEWHERE)) for ident in idents]


def _decision(result: dict[str, Any]) -> tuple[bool, str] | None:
    """Read an answer: yes or no, and why; None when the prompt was only dismissed."""
    action, content = result.get("action"), result.get("content")
    if action == "decline":
        return False, "declined"
    if action != "accept" or type(content) is not dict:
        return None
    choice, reason = content.get("decision"), content.get("reason")
    if choice not in ("approve", "deny"):
        return None
    return choice == "approve", reason[:MAX_REASON] if type(reason) is str else ""
