"""Asking the person in front of the agent, through the agent's own prompt.

Up to 2025-11-25 the gate sends ``elicitation/create`` under an id that nobody else can
know, and the agent's answer to it never reaches the server. From 2026-07-28 on it answers
the call itself with ``input_required`` and a state that stands for exactly this call; the
caller makes the call again with the person's answer. Only where the client said that it
can ask, and only for workflows that allow it: a client may answer without asking anybody.
Pure and small: every shim loads it.
"""

from typing import Any, Final, Protocol

from thoughtgate.core.commands import NOTICE, PROMPT, Command, PersonAnswered, ToAgent
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.replies import render, render_cancelled
from thoughtgate.wire.revisions import CAPABILITIES_KEY, META

METHOD: Final = "elicitation/create"

ID_PREFIX: Final = "tg-ask-"
"""Begins the id of every prompt; the rest is random, so that no server can ask under it."""

MAX_REASON: Final = 500

STATE_PREFIX: Final = "tg1."
"""Begins every state that we give out; the rest cannot be guessed."""

INPUT: Final = "thoughtgate"
"""The name of our question among the inputs that a call needs."""

PROMISE_S: Final = 600.0
"""How long a person may think before the call has to be asked about anew."""
MAX_PROMISED: Final = 100
"""States that stand for a call; the oldest makes room."""

_PROMPTED: Final = frozenset({"tools/call", "resources/read", "prompts/get"})
"""2026-07-28, multi round-trip requests: what may be answered with ``input_required``."""
_ROUND_TRIP: Final = ("requestState", "inputResponses")

Answer = tuple[bool | None, str]
"""Yes or no, and why; None when the person was asked and decided nothing."""

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


class Promises(Protocol):
    """States that stand for calls, each for one call and once."""

    def give(self, ident: str, method: str, params: dict[str, Any], until: float) -> str:
        """Return a state for a call; empty when there can be none."""

    def spend(self, state: str, method: str, params: dict[str, Any], at: float) -> bool:
        """Tell whether a state stands for a call; it does so no second time."""


class KeptPromises:
    """States that are random and known to one session alone."""

    def __init__(self) -> None:
        self._promised: dict[str, tuple[str, dict[str, Any], float]] = {}

    def __len__(self) -> int:
        return len(self._promised)

    def give(self, ident: str, method: str, params: dict[str, Any], until: float) -> str:
        """Keep the call under a new state; the oldest makes room."""
        while len(self._promised) >= MAX_PROMISED:
            del self._promised[next(iter(self._promised))]
        state = STATE_PREFIX + ident
        self._promised[state] = (method, params, until)
        return state

    def spend(self, state: str, method: str, params: dict[str, Any], at: float) -> bool:
        """Tell whether the state is known, young and of this call; it is forgotten either way."""
        promised = self._promised.pop(state, None)
        return promised is not None and promised[:2] == (method, params) and at <= promised[2]


class Elicitations:
    """The prompts of one session."""

    __slots__ = ("_asked", "_can_ask", "is_used", "promises")

    def __init__(self) -> None:
        self.is_used = False
        """Whether the client was asked something, or has said what it can be asked."""
        self._can_ask = False
        self._asked: dict[RequestId, tuple[str, RequestId]] = {}
        """Calls by the id of the prompt that asks about them, with the request's own id."""
        self.promises: Promises | None = None
        """Where states come from; a table of this session's own, unless the driver has others."""

    def learn(self, method: str, params: dict[str, Any]) -> None:
        """Note from ``initialize`` whether the client can show a form."""
        if method == "initialize":
            self.declare(params.get("capabilities"))

    def declare(self, capabilities: Any) -> None:
        """Note from what the client can do whether it can show a form."""
        self._can_ask = _shows_forms(capabilities)
        self.is_used = True

    def is_asked(self, ident: RequestId | None) -> bool:
        """Tell whether a prompt of this id waits for its answer."""
        return ident in self._asked

    def ask(self, key: RequestId, ident: str, call_id: str, text: str) -> list[Command]:
        """Ask about a held call; nothing when the client cannot."""
        if not self._can_ask or not ident.startswith(ID_PREFIX):
            return []
        self._asked[ident] = (call_id, key)
        self.is_used = True
        params = {"message": text, "requestedSchema": SCHEMA}
        frame = render({"jsonrpc": "2.0", "id": ident, "method": METHOD, "params": params})
        return [ToAgent(frame, key, PROMPT)]

    def take(self, message: Message, at: float) -> list[Command] | None:
        """Return what an answer to a prompt comes to; None when it answers none of ours."""
        asked = self._asked.pop(message.id, None) if message.id is not None else None
        if asked is None:
            return None
        return self.answered(asked[0], _decision(message.body.get("result")), at)

    def close(self, call_id: str) -> list[Command]:
        """The call was decided or given up: take the prompt back."""
        if not self._asked:
            return []
        asked = {ident: key for ident, (about, key) in self._asked.items() if about == call_id}
        for ident in asked:
            del self._asked[ident]
        return [
            ToAgent(render_cancelled(ident, ELSEWHERE), key, NOTICE) for ident, key in asked.items()
        ]

    def answered(self, call_id: str, answer: Answer | None, at: float) -> list[Command]:
        """Return what the person said of a call that is made again, now that people are asked."""
        if answer is None or answer[0] is None:
            return []
        return [PersonAnswered(call_id, answer[0], answer[1], at)]

    def promise(
        self, key: RequestId, message: Message, ident: str, text: str, at: float
    ) -> list[Command]:
        """Answer a modern call with the prompt; nothing when its caller cannot ask, or asks already."""
        method, params = message.method, message.body.get("params") or {}
        meta = params.get(META)
        can_ask = type(meta) is dict and _shows_forms(meta.get(CAPABILITIES_KEY))
        if not can_ask or method not in _PROMPTED or any(name in params for name in _ROUND_TRIP):
            return []
        if self.promises is None:
            self.promises = KeptPromises()
            self.is_used = True
        state = self.promises.give(ident, method, _bare(params), at + PROMISE_S)
        if not state:
            return []
        question = {"mode": "form", "message": text, "requestedSchema": SCHEMA}
        result = {
            "resultType": "input_required",
            "inputRequests": {INPUT: {"method": METHOD, "params": question}},
            "requestState": state,
        }
        return [ToAgent(render({"jsonrpc": "2.0", "id": key, "result": result}), key)]

    def redeem(self, message: Message, at: float) -> tuple[Message, Answer | None]:
        """Take our part out of a call that is made again, with what the person said of that call.

        A state that is unknown, old, used or of another call stands for nothing.
        """
        params = message.body.get("params")
        state = params.get("requestState") if type(params) is dict else None
        if type(state) is not str or not state.startswith(STATE_PREFIX):
            return message, None
        assert type(params) is dict
        kept = {name: value for name, value in params.items() if name not in _ROUND_TRIP}
        body = {**message.body, "params": kept}
        plain = message._replace(body=body, raw=render(body))
        promises = self.promises
        if promises is None or not promises.spend(state, message.method, _bare(params), at):
            return plain, None
        responses = params.get("inputResponses")
        return plain, _decision(responses.get(INPUT) if type(responses) is dict else None)


def _shows_forms(capabilities: Any) -> bool:
    said = capabilities.get("elicitation") if type(capabilities) is dict else None
    # 2025-11-25, elicitation: an empty object means forms; so did every one before it.
    return type(said) is dict and (not said or "form" in said)


def _bare(params: dict[str, Any]) -> dict[str, Any]:
    """Return what a call says, without what may differ when it is made again."""
    return {name: value for name, value in params.items() if name not in (*_ROUND_TRIP, META)}


def _decision(result: Any) -> Answer:
    """Read an answer: yes or no, and why; neither when the prompt was only dismissed."""
    said = result if type(result) is dict else {}
    action, content = said.get("action"), said.get("content")
    if action == "decline":
        return False, "declined"
    if action != "accept" or type(content) is not dict:
        return None, ""
    choice, reason = content.get("decision"), content.get("reason")
    if choice not in ("approve", "deny"):
        return None, ""
    return choice == "approve", reason[:MAX_REASON] if type(reason) is str else ""
