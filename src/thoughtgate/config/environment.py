"""The environment variables of ThoughtGate, in one table.

A variable with a key overrides the file; the others are read where they are used. The reference
page is generated from this table.

If an agent starts a gate (``shim``, ``proxy --stdio``, ``serve --stdio``), the gate's environment
is not trusted: an entry in a repository can set it. Variables that could loosen the gate are
ignored then.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.errors import Problem
from thoughtgate.policy.call import PRODUCTION

IGNORED: Final = "ignored"
TIGHTENS: Final = "only if it tightens"
RECORDED: Final = "only recorded"
USED: Final = "used"


def _seconds(value: str) -> Any:
    return f"{value.strip()}s"


def _whole(value: str) -> Any:
    return int(value) if value.strip().isdigit() else value


class Variable(NamedTuple):
    """One environment variable."""

    name: str
    key: str
    """The config key that it overrides; empty if the variable is read elsewhere."""
    default: str
    """The value used when neither the variable nor the key is set."""
    meaning: str
    read: Callable[[str], Any] = str
    """Turns the variable's text into the value of the key."""
    in_agent_gates: str = IGNORED
    """What a gate that an agent starts does with it."""


VARIABLES: Final = (
    Variable("THOUGHTGATE_PROFILE", "profile", "production", "Profile: production or development.", in_agent_gates=TIGHTENS),
    Variable("THOUGHTGATE_LISTEN", "listen.host, listen.port", "127.0.0.1:8080", "Address to listen on, HOST:PORT; sets the transport to http."),
    Variable("THOUGHTGATE_UPSTREAM", "servers.*.url", "none", "URL of the server: the only one in the file, or else the server 'upstream'."),
    Variable("THOUGHTGATE_REQUEST_TIMEOUT_SECS", "listen.request_timeout", "30", "How long a request may take, not counting approvals.", _seconds),
    Variable("THOUGHTGATE_UPSTREAM_CONNECT_TIMEOUT_SECS", "servers.*.connect_timeout", "5", "How long connecting to an HTTP server may take.", _seconds),
    Variable("THOUGHTGATE_MAX_CONCURRENT_REQUESTS", "listen.max_concurrent", "10000", "Maximum number of concurrent requests; further requests get 503.", _whole),
    Variable("THOUGHTGATE_KEEPALIVE_SECS", "listen.keep_alive", "60", "How long an idle connection is kept.", _seconds),
    Variable("THOUGHTGATE_MAX_REQUEST_BODY_BYTES", "listen.max_body", "1048576", "Largest request body.", _whole),
    Variable("THOUGHTGATE_APPROVAL_TIMEOUT_SECS", "approval.*.timeout", "300", "How long a call waits for a decision, in every workflow.", _seconds),
    Variable("THOUGHTGATE_STORE", "store", "sqlite", "Where approvals, tasks and limits are kept."),
    Variable("THOUGHTGATE_LOG_LEVEL", "telemetry.log_level", "info", "Lowest severity that is logged.", in_agent_gates=USED),
    Variable("THOUGHTGATE_CONFIG", "", "none", "Config file, if no flag names one."),
    Variable("THOUGHTGATE_STATE_DIR", "", "the user's state directory", "Directory for the record, the approvals and the run files; mode 0700."),
    Variable("THOUGHTGATE_RUN_ID", "", "a new id", "Run id of all events; SUB_RUN_ID is also accepted.", in_agent_gates=RECORDED),
    Variable("THOUGHTGATE_AGENT_ID", "", "unknown", "Logical agent of all events; SUB_AGENT_ID is also accepted.", in_agent_gates=RECORDED),
    Variable("THOUGHTGATE_CLIENT", "", "unknown", "Client program of all events; SUB_CLIENT is also accepted.", in_agent_gates=RECORDED),
    Variable("THOUGHTGATE_ENV", "", "unknown", "dev, ci or prod; SUB_ENV is also accepted.", in_agent_gates=RECORDED),
    Variable("THOUGHTGATE_PRINCIPAL", "", "local", "Who started the agent; SUB_PRINCIPAL is also accepted.", in_agent_gates=RECORDED),
)  # fmt: skip
"""Every variable, for the reference page."""


def without_loosening(env: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the environment for a gate that an agent starts, and the variables left out of it."""
    left_out = [
        variable.name
        for variable in VARIABLES
        if env.get(variable.name) and not _is_harmless(variable, env[variable.name])
    ]
    return {name: value for name, value in env.items() if name not in left_out}, left_out


def _is_harmless(variable: Variable, value: str) -> bool:
    if variable.in_agent_gates == TIGHTENS:
        return value == PRODUCTION
    return variable.in_agent_gates in {RECORDED, USED}


def apply_environment(
    data: dict[str, Any], env: Mapping[str, str]
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the data with the overrides of the environment, and the problems with them."""
    overrides = [one for one in VARIABLES if one.key and env.get(one.name)]
    # Copying a large policy takes longer than checking it.
    changed: dict[str, Any] = copy.deepcopy(data) if overrides else data
    problems: list[Problem] = []
    for variable in overrides:
        value = env[variable.name]
        if variable.name == "THOUGHTGATE_LISTEN":
            problems += _set_listen(changed, value)
        elif variable.name == "THOUGHTGATE_UPSTREAM":
            _set_upstream(changed, value)
        else:
            _set(changed, variable.key.split("."), variable.read(value))
    return changed, problems


def _set(data: dict[str, Any], keys: list[str], value: Any) -> None:
    head, *rest = keys
    if not rest:
        data[head] = value
    elif head == "*":
        for member in data.values():
            if isinstance(member, dict):
                _set(member, rest, value)
    else:
        # Without a section for approvals, there is still the default workflow to be changed.
        inner = data.setdefault(head, {"default": {}} if head == "approval" else {})
        if isinstance(inner, dict):
            _set(inner, rest, value)


def _set_listen(data: dict[str, Any], value: str) -> list[Problem]:
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdigit():
        words = f"must be HOST:PORT, such as 127.0.0.1:8080 (got {value!r})"
        return [Problem("THOUGHTGATE_LISTEN", words)]
    _set(data, ["listen", "transport"], "http")
    _set(data, ["listen", "host"], host.strip("[]") or "0.0.0.0")  # noqa: S104 - without auth the checks refuse it
    _set(data, ["listen", "port"], int(port))
    return []


def _set_upstream(data: dict[str, Any], url: str) -> None:
    servers = data.setdefault("servers", {})
    if not isinstance(servers, dict):
        return
    named = [key for key in servers if key != "*"]
    server = servers.setdefault(named[0] if len(named) == 1 else "upstream", {})
    if isinstance(server, dict):
        server.pop("command", None)
        server.pop("args", None)
        server["url"] = url
