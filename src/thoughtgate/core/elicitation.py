"""Approval through the agent's own prompt (MCP elicitation).

Up to 2025-11-25 the gate sends ``elicitation/create`` with an unguessable id, and the agent's
answer to it never reaches the server. From 2026-07-28 on the gate answers the call itself with
``input_required`` and a state that stands for exactly this call; the caller repeats the call
with the person's answer. This is used only if the client declares the capability and the
workflow allows it, because a client may answer without showing the prompt to anyone. Pure and
small: every shim loads it.
"""

import json
from typing import Any, Final, NamedTuple, Protocol

from thoughtgate.core.commands import NOTICE, PROMPT, Command, PersonAnswered, ToAgent
from thoughtgate.core.events import PersonAsked
from thoughtgate.wire.extra_params import ROUND_TRIP, repeated_params
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.replies import render, render_cancelled
from thoughtgate.wire.revisions import CAPABILITIES_KEY, client_name, meta_of

METHOD: Final = "elicitation/create"

ID_PREFIX: Final = "tg-ask-"
"""Prefix of the id of every prompt; the rest is random, so that no server can use the same id."""

MAX_REASON: Final = 500

STATE_PREFIX: Final = "tg1."
"""Prefix of every state that we issue; the rest cannot be guessed."""

INPUT: Final = "thoughtgate"
"""The name of our prompt among the inputs that a call needs."""

STATE_S: Final = 600.0
"""How long a person may take to answer before the state expires and the call needs a new prompt."""
MAX_STATES: Final = 100
"""States kept per session; the oldest is dropped for a new one."""

_PROMPTED: Final = frozenset({"tools/call", "resources/read", "prompts/get"})
"""MCP 2026-07-28, multi round-trip requests: methods that may return ``input_required``."""

Answer = tuple[bool | None, str, str]
"""The decision, its reason, and the definition of the tool that the prompt was about.

The decision is None if the person dismissed the prompt; the definition is empty if it is not known."""

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
"""A flat schema of strings only, which clients of every revision with elicitation can show."""


NOTHING_TO_FILL_IN: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""The schema of a prompt that only tells something."""


URL_REQUIRED: Final = -32042
"""MCP 2025-11-25, elicitation: URLElicitationRequiredError. Revision 2026-07-28 has no such code."""


def login_request(page: str, server: str, ident: str) -> dict[str, Any]:
    """Return the data of an error that has a person sign in to a server on a page of the console.

    The agent reads the URL, so it holds nothing secret: the page asks for the console's own sign-in.
    """
    text = f"Sign in to the server {server!r} on this page, then try again."
    asked = {"mode": "url", "elicitationId": ident, "url": page, "message": text}
    return {"elicitations": [asked]}


class HoldNotice(NamedTuple):
    """What an agent's program is told about a held call."""

    prompt: str = ""
    """The question of the agent's own prompt; empty if the workflow does not allow one."""
    waits: str = ""
    """What waits and where to answer; empty if the agent is not to be told."""
    page: str = ""
    """The console's page about the request, without any secret; empty if no console is known."""
    definition: str = ""
    """Digest of the definition of the tool; empty if the server has not listed it."""


class RequestStates(Protocol):
    """Issues states that stand for calls, each valid for one call and one use."""

    def issue(self, ident: str, method: str, params: dict[str, Any], until: float) -> str:
        """Return a state for a call; empty if none can be issued."""

    def use(self, state: str, method: str, params: dict[str, Any], at: float) -> bool:
        """Tell whether a state stands for a call; it is used up by this."""


class SessionStates:
    """Random states that only one session knows."""

    def __init__(self) -> None:
        self._issued: dict[str, tuple[str, str, float]] = {}

    def __len__(self) -> int:
        return len(self._issued)

    def issue(self, ident: str, method: str, params: dict[str, Any], until: float) -> str:
        """Store the call under a new state; the oldest state is dropped if there are too many."""
        while len(self._issued) >= MAX_STATES:
            del self._issued[next(iter(self._issued))]
        state = STATE_PREFIX + ident
        self._issued[state] = (method, _text_of(params), until)
        return state

    def use(self, state: str, method: str, params: dict[str, Any], at: float) -> bool:
        """Tell whether the state is known, not expired and for this call; it is removed either way."""
        issued = self._issued.pop(state, None)
        if issued is None:
            return False
        said, text, until = issued
        return (said, text) == (method, _text_of(params)) and at <= until


class Elicitations:
    """The prompts of one session."""

    __slots__ = (
        "_asked",
        "_can_ask",
        "_only_told",
        "client",
        "is_used",
        "opens_urls",
        "revision",
        "states",
    )

    def __init__(self) -> None:
        self.is_used = False
        """Whether a prompt was shown, or the client has declared its capabilities."""
        self._can_ask = False
        self.opens_urls = False
        """Whether the client can have a person open a URL."""
        self.client = ""
        """Name and version of the client, as it gave them in ``initialize``."""
        self.revision: Any = ""
        """The revision that ``initialize`` agreed on; before its answer, the one that was asked for."""
        self._asked: dict[RequestId, tuple[str, RequestId]] = {}
        """Calls by the id of their prompt, with the id of the request."""
        self._only_told: set[RequestId] = set()
        """The ids of prompts whose answers decide nothing."""
        self.states: RequestStates | None = None
        """Issues the states; a table of this session, unless the driver sets another."""

    def learn(self, method: str, params: dict[str, Any]) -> None:
        """Note from ``initialize`` what the client is called and whether it can show a form."""
        if method == "initialize":
            self.client = client_name(params.get("clientInfo"))
            self.revision = params.get("protocolVersion", "")
            self.declare(params.get("capabilities"))

    def declare(self, capabilities: Any) -> None:
        """Note from the client's capabilities whether it can show a form, or open a URL."""
        self._can_ask = _shows_forms(capabilities)
        self.opens_urls = _opens_urls(capabilities)
        self.is_used = True

    def is_asked(self, ident: RequestId | None) -> bool:
        """Tell whether a prompt with this id is open."""
        return ident in self._asked

    def ask(self, key: RequestId, ident: str, call_id: str, text: str) -> list[ToAgent]:
        """Show a prompt about a held call; return nothing if the client cannot show one."""
        if not self._can_ask or not ident.startswith(ID_PREFIX):
            return []
        self._asked[ident] = (call_id, key)
        self.is_used = True
        params = {"message": text, "requestedSchema": SCHEMA}
        frame = render({"jsonrpc": "2.0", "id": ident, "method": METHOD, "params": params})
        return [ToAgent(frame, key, PROMPT)]

    def show(
        self, asked: PersonAsked, message: Message | None, call_id: str, *, modern: bool
    ) -> list[ToAgent]:
        """Ask about a held call, or tell that it waits; ``message`` is None if it was answered before."""
        if message is None:
            return []
        if modern:
            # Only the reply to the call can carry a prompt, so one that tells would end the call.
            if not asked.text:
                return []
            return self.prompt_with_state(asked, message)
        if asked.text:
            return self.ask(asked.key, asked.ident, call_id, asked.text)
        return self._tell(asked, call_id)

    def _tell(self, asked: PersonAsked, call_id: str) -> list[ToAgent]:
        """Show that a held call waits and where to answer; whatever the prompt returns is ignored."""
        params: dict[str, Any] = {"message": asked.waits, "requestedSchema": NOTHING_TO_FILL_IN}
        if asked.page and self.opens_urls:
            page = {"mode": "url", "elicitationId": asked.ident, "url": asked.page}
            params = {**page, "message": asked.waits}
        elif not self._can_ask:
            return []
        if not asked.waits or not asked.ident.startswith(ID_PREFIX):
            return []
        self._asked[asked.ident] = (call_id, asked.key)
        self._only_told.add(asked.ident)
        frame = render({"jsonrpc": "2.0", "id": asked.ident, "method": METHOD, "params": params})
        return [ToAgent(frame, asked.key, PROMPT)]

    def take(self, message: Message, at: float) -> list[Command] | None:
        """Return the commands for an answer to a prompt; None if it answers none of ours."""
        asked = self._asked.pop(message.id, None) if message.id is not None else None
        if asked is None:
            return None
        if message.id in self._only_told:
            self._only_told.discard(message.id)
            return []
        return self.answered(asked[0], _decision(message.body.get("result")), at)

    def close(self, call_id: str) -> list[Command]:
        """Cancel the prompt of a call that was decided or given up."""
        if not self._asked:
            return []
        asked = {ident: key for ident, (about, key) in self._asked.items() if about == call_id}
        for ident in asked:
            del self._asked[ident]
            self._only_told.discard(ident)
        return [
            ToAgent(render_cancelled(ident, ELSEWHERE), key, NOTICE) for ident, key in asked.items()
        ]

    def answered(self, call_id: str, answer: Answer | None, at: float) -> list[Command]:
        """Return the person's answer to a repeated call, now that its approval request exists."""
        approve, reason, definition = answer or (None, "", "")
        if approve is None:
            return []
        return [PersonAnswered(call_id, approve, reason, at, definition=definition)]

    def prompt_with_state(self, asked: PersonAsked, message: Message) -> list[ToAgent]:
        """Answer a modern call with a prompt; nothing if its caller cannot show one, or already does."""
        method, params = message.method, message.body.get("params") or {}
        can_ask = _shows_forms(meta_of(params).get(CAPABILITIES_KEY))
        if not can_ask or method not in _PROMPTED or not ROUND_TRIP.isdisjoint(params):
            return []
        if self.states is None:
            self.states = SessionStates()
            self.is_used = True
        bound = _bound(repeated_params(params), asked.definition)
        state = self.states.issue(asked.ident, method, bound, asked.at + STATE_S)
        if not state:
            return []
        if asked.definition:
            state = f"{state}.{asked.definition}"
        question = {"mode": "form", "message": asked.text, "requestedSchema": SCHEMA}
        result = {
            "resultType": "input_required",
            "inputRequests": {INPUT: {"method": METHOD, "params": question}},
            "requestState": state,
        }
        body = {"jsonrpc": "2.0", "id": asked.key, "result": result}
        return [ToAgent(render(body), asked.key)]

    def take_state(self, message: Message, at: float) -> tuple[Message, Answer | None]:
        """Remove our part from a repeated call, and return it with the person's answer.

        A state that is unknown, expired, used or for another call is ignored.
        """
        params = message.body.get("params")
        state = params.get("requestState") if type(params) is dict else None
        if type(state) is not str or not state.startswith(STATE_PREFIX):
            return message, None
        assert type(params) is dict
        # Valid or not, the state is the gate's own, and the server must not see it.
        kept = {name: value for name, value in params.items() if name not in ROUND_TRIP}
        body = {**message.body, "params": kept}
        plain = message._replace(body=body, raw=render(body))
        states = self.states
        issued, _, definition = state.removeprefix(STATE_PREFIX).partition(".")
        bound = _bound(repeated_params(params), definition)
        if states is None or not states.use(STATE_PREFIX + issued, message.method, bound, at):
            return plain, None
        responses = params.get("inputResponses")
        said = _decision(responses.get(INPUT) if type(responses) is dict else None)
        return plain, (*said[:2], definition)


def _shows_forms(capabilities: Any) -> bool:
    said = capabilities.get("elicitation") if type(capabilities) is dict else None
    # MCP 2025-11-25, elicitation: an empty object means forms, as in every earlier revision.
    return type(said) is dict and (not said or "form" in said)


def _opens_urls(capabilities: Any) -> bool:
    said = capabilities.get("elicitation") if type(capabilities) is dict else None
    return type(said) is dict and type(said.get("url")) is dict


def _bound(params: dict[str, Any], definition: str) -> dict[str, Any]:
    """Return what a state stands for: the call, made under one definition of its tool."""
    return {"params": params, "definition": definition} if definition else params


def _text_of(params: dict[str, Any]) -> str:
    """Return params as text, because Python takes ``true`` for equal to 1."""
    return json.dumps(params, sort_keys=True)


def _decision(result: Any) -> Answer:
    """Parse an answer: the decision and its reason; no decision if the prompt was dismissed."""
    said = result if type(result) is dict else {}
    action, content = said.get("action"), said.get("content")
    if action == "decline":
        return False, "declined", ""
    if action != "accept" or type(content) is not dict:
        return None, "", ""
    choice, reason = content.get("decision"), content.get("reason")
    if choice not in ("approve", "deny"):
        return None, "", ""
    return choice == "approve", reason[:MAX_REASON] if type(reason) is str else "", ""
