"""A stand-in for a language model on loopback, so that real agents run whole sessions.

It speaks the forms of Anthropic, OpenAI (chat completions and responses) and Gemini. When an agent
offers a tool whose name ends as wanted, the model calls it once in each conversation; given a
result, it says "done". What the agents offered and which results they sent is kept for the test.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from tests.support.waiting import PATIENCE_S

ARGUMENTS: Final = {"text": "hi"}
_USAGE: Final = {"input_tokens": 1, "output_tokens": 1}


class ModelServer:
    """The model, and what it saw."""

    def __init__(self, wanted: str = "echo") -> None:
        self.wanted = wanted
        self.offered: list[list[str]] = []
        """The names of the tools of each request."""
        self.results: list[str] = []
        """What the agents sent as results of calls, as text."""
        self.may_answer = threading.Event()
        """Cleared by a test that looks at something while sessions go on."""
        self.may_answer.set()
        self._numbers = count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.model = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def choose(self, names: Iterable[str], result: Any) -> str:
        """Return the tool to call; empty to end the turn."""
        offered = [name for name in names if name]
        self.offered.append(offered)
        found = next((name for name in offered if name.endswith(self.wanted)), "")
        if found:  # agents also ask for titles and the like, and wait for those
            self.may_answer.wait(PATIENCE_S)
        if result is not None:
            self.results.append(json.dumps(result))
            return ""
        return found

    def new_id(self) -> str:
        """Return the id of a call."""
        return f"call_{next(self._numbers)}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """List one model."""
        one = {"id": "fake", "object": "model", "name": "fake"}
        self._send({"object": "list", "data": [one], "models": [one]})

    def do_POST(self) -> None:
        """Answer a request in the form of its path."""
        path = self.path.partition("?")[0]
        asked = json.loads(self._body() or b"{}")
        model: ModelServer = self.server.model
        if path.endswith("/messages"):
            self._answer(_anthropic(model, asked), asked.get("stream"))
        elif path.endswith("/chat/completions"):
            self._answer(_chat(model, asked), asked.get("stream"))
        elif path.endswith("/responses"):
            self._answer(_responses(model, asked), stream=True)
        elif "enerateContent" in path:
            self._answer(_gemini(model, asked), "stream" in path)
        else:
            self._send({"input_tokens": 1})

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, answer: tuple[dict[str, Any], list[Any]], stream: Any) -> None:
        whole, events = answer
        if not stream:
            self._send(whole)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            text = event if isinstance(event, str) else json.dumps(event)
            with suppress(BrokenPipeError):  # a session that the test has ended
                self.wfile.write(f"{name}data: {text}\n\n".encode())
        self.close_connection = True

    def _send(self, value: Mapping[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _anthropic(model: ModelServer, asked: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    last = asked["messages"][-1]["content"]
    blocks = last if isinstance(last, list) else []
    results = [one["content"] for one in blocks if one.get("type") == "tool_result"]
    tool = model.choose((one.get("name", "") for one in asked.get("tools", ())), results or None)
    block: dict[str, Any] = {"type": "text", "text": "done"}
    delta: dict[str, Any] = {"type": "text_delta", "text": "done"}
    start: dict[str, Any] = {"type": "text", "text": ""}
    if tool:
        start = {"type": "tool_use", "id": model.new_id(), "name": tool, "input": {}}
        block = {**start, "input": ARGUMENTS}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(ARGUMENTS)}
    reason = "tool_use" if tool else "end_turn"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model")}
    message |= {"content": [block], "stop_reason": reason, "stop_sequence": None, "usage": _USAGE}
    events = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    return message, events


def _chat(model: ModelServer, asked: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    last = asked["messages"][-1]
    result = last.get("content") if last.get("role") == "tool" else None
    tool = model.choose((one["function"]["name"] for one in asked.get("tools") or ()), result)
    said: dict[str, Any] = {"role": "assistant", "content": "done"}
    if tool:
        function = {"name": tool, "arguments": json.dumps(ARGUMENTS)}
        call = {"index": 0, "id": model.new_id(), "type": "function", "function": function}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "tool_calls" if tool else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    base = {"id": "c", "created": 1, "model": "fake"}
    whole = {
        **base,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": said, "finish_reason": reason}],
        "usage": usage,
    }
    chunk = {**base, "object": "chat.completion.chunk"}
    events = [
        {**chunk, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
        "[DONE]",
    ]
    return whole, events


def _responses(model: ModelServer, asked: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    given = asked.get("input")
    last = given[-1] if isinstance(given, list) and given else {}
    result = last.get("output") if "output" in str(last.get("type")) else None
    spaces = dict(_namespaced(asked.get("tools") or ()))
    tool = model.choose(spaces, result)
    content = [{"type": "output_text", "text": "done", "annotations": []}]
    item: dict[str, Any] = {"type": "message", "id": "m_1", "role": "assistant", "content": content}
    if tool:
        item = {"type": "function_call", "id": "fc_1", "call_id": model.new_id()}
        item |= {"name": spaces[tool][1], "arguments": json.dumps(ARGUMENTS)}
        if spaces[tool][0]:
            item["namespace"] = spaces[tool][0]
    done = {"id": "resp_1", "status": "completed", "output": [item], "usage": _RESPONSE_USAGE}
    events = [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    return done, events


_RESPONSE_USAGE: Final = {
    **_USAGE,
    "total_tokens": 2,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


def _namespaced(tools: Iterable[dict[str, Any]]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the names of tools; Codex groups those of a server in a namespace."""
    for tool in tools:
        for inner in tool.get("tools", ()):
            name = str(inner.get("name"))
            yield f"{tool.get('name')}__{name}", (str(tool.get("name")), name)
        if "tools" not in tool:
            yield str(tool.get("name")), ("", str(tool.get("name")))


def _gemini(model: ModelServer, asked: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    parts = asked["contents"][-1].get("parts", ()) if asked.get("contents") else ()
    results = [one["functionResponse"] for one in parts if "functionResponse" in one]
    names = (
        one["name"]
        for tool in asked.get("tools", ())
        for one in tool.get("functionDeclarations", ())
    )
    tool = model.choose(names, results or None)
    part: dict[str, Any] = {"text": "done"}
    if tool:
        part = {"functionCall": {"name": tool, "args": ARGUMENTS}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"}
    return whole, [whole]
