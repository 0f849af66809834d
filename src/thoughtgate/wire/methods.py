"""How the gate treats each MCP method: gated, a filtered list, forwarded, or unknown.

Revisions do not matter here: a method that is gated in one revision is always gated.
"""

import re
from typing import Any, Final, NamedTuple

from thoughtgate.wire.frame import fold_key
from thoughtgate.wire.message import Json
from thoughtgate.wire.revisions import version_in
from thoughtgate.wire.unchecked import unchecked


class Gated(NamedTuple):
    """A method that needs a verdict before it is forwarded."""

    kind: str
    """``tool``, ``resource`` or ``prompt``."""
    member: str
    """The member of params with the name of the tool, prompt or resource."""


class Listing(NamedTuple):
    """A method whose result lists things that may be hidden."""

    kind: str
    member: str
    """The member of the result that contains the entries."""
    key: str
    """The member of an entry with its name."""


GATED: Final[dict[str, Gated]] = {
    "tools/call": Gated("tool", "name"),
    "resources/read": Gated("resource", "uri"),
    "resources/subscribe": Gated("resource", "uri"),
    "prompts/get": Gated("prompt", "name"),
}

LISTINGS: Final[dict[str, Listing]] = {
    "tools/list": Listing("tool", "tools", "name"),
    "resources/list": Listing("resource", "resources", "uri"),
    "resources/templates/list": Listing("resource", "resourceTemplates", "uriTemplate"),
    "prompts/list": Listing("prompt", "prompts", "name"),
}

INTRODUCTIONS: Final[dict[str, Listing]] = {
    "initialize": Listing("server", "", "name"),
    "server/discover": Listing("server", "", "name"),
}
"""Methods whose result describes the server, and can contain instructions for the model."""

SCREENED: Final[dict[str, Listing]] = {**LISTINGS, **INTRODUCTIONS}
"""Methods whose results are compared with what was accepted before the agent gets them."""

PASSED: Final = frozenset(
    {
        "initialize",
        "initialized",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/resources/updated",
        "notifications/resources/list_changed",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "ping",
        "pong",
    }
)
"""Forwarded without a verdict, as the stdio requirement (F-017) lists them."""

LISTEN: Final = "subscriptions/listen"
CANCELLED: Final = "notifications/cancelled"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
LISTS_CHANGED: Final = frozenset(
    f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")
)
PROGRESS: Final = "notifications/progress"
COMPLETE: Final = "completion/complete"

NEEDS_ID: Final = frozenset({*GATED, *LISTINGS, LISTEN, COMPLETE})
"""Methods that must be requests: without an id, the verdict could not be reported."""

MAX_TARGET: Final = 65_536
"""Maximum characters of a name or URI: it is judged in several readings by every rule."""

_NOT_IN_NAMES: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]|^\\s|\\s\\Z")
"""Control characters, line separators, byte order marks and outer white space. URL parsers remove
some of them, so that the name that is judged would not be the one that the server reads. No tool,
prompt or resource needs them: the specification gives tool names letters, digits and ``_-./``."""

_REFS: Final = {"ref/prompt": Gated("prompt", "name"), "ref/resource": Gated("resource", "uri")}
"""The types of a completion's reference, and the member with its name."""

_VARIANT: Final = (
    "the method's name differs from a known one only by case, white space or after a NUL"
)

SERVER_REQUESTS: Final[dict[str, tuple[str, str]]] = {
    "sampling/createMessage": ("sampling", "createMessage"),
    "elicitation/create": ("elicitation", "form"),
    "roots/list": ("roots", "list"),
}
"""Requests of a server to the agent that need a verdict: their kind, and the name for rules.

The name of an elicitation is its mode, ``form`` if it has none.
"""

_FOLDED_SERVER_REQUESTS: Final = frozenset(method.casefold() for method in SERVER_REQUESTS)

INPUT_REQUIRED: Final = "input_required"
"""Stands for the method of the input requests in a result; they have several methods."""

MAX_INPUTS: Final = 100
"""Maximum number of requests to the agent in one message; every rule judges each."""

_INPUTS: Final = "inputrequests"
_ASKING: Final = frozenset({"method", "params"})
_CARRIERS: Final = frozenset(
    {
        *((inside, name) for inside in ("", "result", "task") for name in ("result", "error")),
        ("", "task"),
        ("result", "task"),
        ("error", "data"),
    }
)
"""The members that may carry requests to the agent, each with the member that it is inside of."""
_PLAIN_MEMBERS: Final = frozenset({"jsonrpc", "id", "result", "content", "isError", "tools"})
"""Members of most responses, whose names need no folding."""
_RESPONSE: Final = frozenset({"jsonrpc", "id", "result"})
_SILENT: Final = frozenset({"content", "structuredContent", "isError", "tools", "_meta"})
"""Members of most results, which neither are nor carry requests to the agent."""

TASKS_LIST: Final = "tasks/list"

TASK_RESULTS: Final = frozenset({"tasks/get", "tasks/result"})
"""Methods whose answers may hold the result of a call that became a task of the server."""

TASK_METHODS: Final = frozenset(
    {"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"}
)

_EXACT: Final = NEEDS_ID | TASK_METHODS
_FOLDED: Final = frozenset(method.casefold() for method in _EXACT)


class Named(NamedTuple):
    """Something that a request names and that must therefore be judged."""

    kind: str
    name: str
    arguments: dict[str, Json]


_MAX_TTL_MS: Final = 2**53
"""The largest whole number that every reader of JSON understands."""


def named_by(method: str, params: dict[str, Json]) -> list[Named] | str:
    """Return everything in a request that the gates must judge, or what is wrong with it.

    The list is empty for a method that is not gated. ``subscriptions/listen`` names resources,
    as ``resources/subscribe`` did, and a completion names a prompt or a resource template;
    both would bypass the gate if they were not judged.
    """
    gated = GATED.get(method)
    if gated is not None:
        return _named_in(gated, params)
    if method == LISTEN:
        return _named_in_listen(params)
    if method == COMPLETE:
        return _named_in_completion(params)
    if is_variant(method):
        return _VARIANT
    return []


def is_variant(method: str) -> bool:
    """Tell whether a lenient server could take a method for one that is judged, or about a task."""
    return method not in _EXACT and _fold_method(method) in _FOLDED


def _fold_method(method: str) -> str:
    # In C, U+0000 ends a string.
    return method.partition("\0")[0].strip().casefold()


def _named_in(gated: Gated, params: dict[str, Json]) -> list[Named] | str:
    name = params.get(gated.member)
    if not _is_plain_name(name):
        wrong = _wrong_name(f"params.{gated.member}", name)
        if wrong:
            return wrong
    arguments: Any = params.get("arguments")
    if arguments is None:
        if "arguments" in params and gated.kind == "tool":
            return "params.arguments must be an object"
        arguments = {}
    if type(arguments) is not dict:
        return "params.arguments must be an object"
    if "task" in params and gated.kind == "tool" and (wrong := _wrong_task(params)):
        return wrong
    return [unchecked(Named, (gated.kind, name, arguments))]


def _wrong_task(params: dict[str, Json]) -> str:
    """Return what is wrong with a call's request for a task; empty if nothing.

    Checked for every call, held or not: whether a call is refused must not depend on the policy.
    From 2026-07-28 on, the member has no meaning.
    """
    if version_in(params) is not None:
        return ""
    task = params["task"]
    if type(task) is not dict:
        return "params.task must be an object"
    ttl = task.get("ttl")
    if ttl is not None and (type(ttl) is not int or not 0 <= ttl <= _MAX_TTL_MS):
        return "params.task.ttl must be a whole number of milliseconds"
    return ""


def _named_in_listen(params: dict[str, Json]) -> list[Named] | str:
    wanted = params.get("notifications")
    if wanted is None:
        return []
    if type(wanted) is not dict:
        return "params.notifications must be an object"
    uris = wanted.get("resourceSubscriptions")
    if uris is None:
        return []
    place = "params.notifications.resourceSubscriptions"
    if type(uris) is not list:
        return f"{place} must be a list of URIs"
    wrong = next(filter(None, (_wrong_name(f"each of {place}", uri) for uri in uris)), "")
    if not wrong and sum(map(len, uris)) > MAX_TARGET:
        wrong = f"{place} must have at most {MAX_TARGET} characters"
    return wrong or [Named("resource", uri, {}) for uri in uris]


def _named_in_completion(params: dict[str, Json]) -> list[Named] | str:
    ref = params.get("ref")
    if type(ref) is not dict:
        return "params.ref must be an object"
    named = [gated for gated in _REFS.values() if gated.member in ref]
    if len(named) != 1:
        # Servers differ in which of the two they read.
        return "params.ref must have either a name or a uri"
    gated = named[0]
    if "type" in ref and (type(ref["type"]) is not str or _REFS.get(ref["type"]) != gated):
        return f"params.ref.type does not fit params.ref.{gated.member}"
    name = ref[gated.member]
    return _wrong_name(f"params.ref.{gated.member}", name) or [Named(gated.kind, name, {})]


def _is_plain_name(name: Any) -> bool:
    """Tell quickly that nothing is wrong with a name; False means that something may be."""
    return (
        type(name) is str
        and 0 < len(name) <= MAX_TARGET
        and name.isascii()
        and name.isprintable()
        and " " not in name
    )


def _wrong_name(place: str, name: Any) -> str:
    """Return what is wrong with the name of a tool or prompt, or with a URI; empty if nothing."""
    if type(name) is not str or not name:
        return f"{place} must be a non-empty string"
    if len(name) > MAX_TARGET:
        return f"{place} must have at most {MAX_TARGET} characters"
    if (not name.isascii() or not name.isprintable() or " " in name) and _NOT_IN_NAMES.search(name):
        return f"{place} must not have control characters or white space at its ends"
    return ""


def named_by_server(method: str, params: Json) -> list[Named] | str:
    """Return what the gates must judge in a request of a server to the agent, or what is wrong.

    The arguments are the params, so that conditions can test the prompt's text or its URL.
    """
    known = SERVER_REQUESTS.get(method)
    if known is None:
        if _fold_method(method) in _FOLDED_SERVER_REQUESTS:
            return _VARIANT
        return []
    said = {} if params is None else params
    if type(said) is not dict:
        return "params must be an object"
    kind, name = known
    if kind == "elicitation":
        if any(key != "mode" and fold_key(key) == "mode" for key in said):
            return "a parameter's name differs from mode only by case"
        name = said.get("mode", name)
        if type(name) is not str or not name:
            return "params.mode must be a non-empty string"
    arguments = {member: value for member, value in said.items() if member != "_meta"}
    return [Named(kind, name, arguments)]


def input_requests(members: dict[str, Json]) -> dict[str, Json]:
    """Return the requests to the agent that a response or the params of a notification carry.

    Since MCP 2026-07-28 they are members of a result, of a task's result and of a task's
    notifications; in 2025-11-25 an error may carry elicitations. The keys only tell them apart.
    Agents may ignore the case of members, so every spelling counts.
    """
    result = members.get("result")
    # True for almost all answers, and this check is cheap.
    if type(result) is dict and _SILENT.issuperset(result) and _RESPONSE.issuperset(members):
        return {}
    return _find_requests(members, "")


def _find_requests(members: dict[str, Json], inside: str) -> dict[str, Json]:
    """Return the requests in the members of an object; ``inside`` is the member that holds it."""
    found: dict[str, Json] = {}
    for key, value in members.items():
        name = key if key in _PLAIN_MEMBERS else fold_key(key)
        if name == _INPUTS and value is not None:
            more = value if type(value) is dict else {key: value}
        elif name == "elicitations" and inside == "data":
            asked = value if type(value) is list else [value]
            more = {str(number): _elicitation(one) for number, one in enumerate(asked)}
        elif type(value) is dict and (inside, name) in _CARRIERS:
            more = _find_requests(value, name)
        else:
            continue
        # Requests with the same key cannot be told apart; None makes ``named_in_requests`` refuse.
        found |= more if found.keys().isdisjoint(more) else {key: None}
    return found


def _elicitation(params: Json) -> Json:
    # In 2025-11-25 an error can only ask for URL elicitations, and need not repeat the mode.
    with_mode = {"mode": "url", **params} if type(params) is dict else params
    return {"method": "elicitation/create", "params": with_mode}


def named_in_requests(requests: dict[str, Json]) -> list[Named] | str:
    """Return what the gates must judge in the requests of a message, or what is wrong with it."""
    if len(requests) > MAX_INPUTS:
        return f"a message has at most {MAX_INPUTS} input requests"
    found: list[Named] = []
    for request in requests.values():
        if type(request) is not dict or type(method := request.get("method")) is not str:
            return "an input request needs a method"
        if any(key not in _ASKING and fold_key(key) in _ASKING for key in request):
            return "a member of an input request differs from a known one only by case"
        named = named_by_server(method, request.get("params"))
        if isinstance(named, str):
            return named
        found += named
    return found
