"""How the gate treats each MCP method: gated, a filtered list, forwarded, or unknown.

Revisions do not matter here: a method that is gated in one revision is always gated.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.wire.message import Json
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
PROGRESS: Final = "notifications/progress"
COMPLETE: Final = "completion/complete"

NEEDS_ID: Final = frozenset({*GATED, *LISTINGS, LISTEN, COMPLETE})
"""Methods that must be requests: without an id, the verdict could not be reported."""

_FOLDED: Final = frozenset(method.casefold() for method in NEEDS_ID)

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

TASKS_LIST: Final = "tasks/list"

TASK_METHODS: Final = frozenset(
    {"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"}
)


class Named(NamedTuple):
    """Something that a request names and that must therefore be judged."""

    kind: str
    name: str
    arguments: dict[str, Json]


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
        return "the method's name differs from a gated one only by case or white space"
    return []


def is_variant(method: str) -> bool:
    """Tell whether a lenient server could take a method for a gated or filtered one."""
    return method not in NEEDS_ID and method.strip().casefold() in _FOLDED


def _named_in(gated: Gated, params: dict[str, Json]) -> list[Named] | str:
    name = params.get(gated.member)
    if type(name) is not str or not name:
        return f"params.{gated.member} must be a non-empty string"
    arguments: Any = params.get("arguments")
    if arguments is None:
        if "arguments" in params and gated.kind == "tool":
            return "params.arguments must be an object"
        arguments = {}
    if type(arguments) is not dict:
        return "params.arguments must be an object"
    return [unchecked(Named, (gated.kind, name, arguments))]


def _named_in_listen(params: dict[str, Json]) -> list[Named] | str:
    wanted = params.get("notifications")
    if wanted is None:
        return []
    if type(wanted) is not dict:
        return "params.notifications must be an object"
    uris = wanted.get("resourceSubscriptions")
    if uris is None:
        return []
    if type(uris) is not list or not all(type(uri) is str and uri for uri in uris):
        return "params.notifications.resourceSubscriptions must be a list of URIs"
    return [Named("resource", uri, {}) for uri in uris]


def _named_in_completion(params: dict[str, Json]) -> list[Named] | str:
    ref = params.get("ref")
    if type(ref) is not dict:
        return "params.ref must be an object"
    for kind, member in (("prompt", "name"), ("resource", "uri")):
        if member in ref:
            if type(ref[member]) is not str or not ref[member]:
                return f"params.ref.{member} must be a non-empty string"
            return [Named(kind, ref[member], {})]
    return "params.ref names nothing"


def named_by_server(method: str, params: Json) -> list[Named] | str:
    """Return what the gates must judge in a request of a server to the agent, or what is wrong.

    The arguments are the params, so that conditions can test the prompt's text or its URL.
    """
    known = SERVER_REQUESTS.get(method)
    if known is None:
        if method.strip().casefold() in _FOLDED_SERVER_REQUESTS:
            return "the method's name differs from a gated one only by case or white space"
        return []
    said = {} if params is None else params
    if type(said) is not dict:
        return "params must be an object"
    kind, name = known
    if kind == "elicitation":
        name = said.get("mode", name)
        if type(name) is not str or not name:
            return "params.mode must be a non-empty string"
    arguments = {member: value for member, value in said.items() if member != "_meta"}
    return [Named(kind, name, arguments)]


def named_in_result(result: dict[str, Json]) -> list[Named] | str:
    """Return what the gates must judge in a result that asks the agent for input, or what is wrong.

    Since MCP 2026-07-28 a server's requests to the agent are members of a result.
    """
    requests = result.get("inputRequests")
    if requests is None:
        return []
    if type(requests) is not dict:
        return "inputRequests must be an object"
    found: list[Named] = []
    for request in requests.values():
        method = request.get("method") if type(request) is dict else None
        if type(method) is not str:
            return "an input request needs a method"
        named = named_by_server(method, request.get("params"))
        if isinstance(named, str):
            return named
        found += named
    return found
