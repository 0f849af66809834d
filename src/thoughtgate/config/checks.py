"""Checks of config keys that depend on each other, on the plain data.

The checks run even if ``read_keys`` found problems, so that one report lists everything.
They therefore assume nothing about types.
"""

import ipaddress
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from thoughtgate.config.complaints import EMPTY
from thoughtgate.config.document import Path
from thoughtgate.config.durations import parse_duration, parse_size
from thoughtgate.config.key_types import BUILT_IN_CHANNELS
from thoughtgate.config.server_auth import check_server_auth
from thoughtgate.policy.call import KINDS
from thoughtgate.policy.globs import is_glob

Found: TypeAlias = Iterator[tuple[Path, str]]

RESERVED_ID: Final = "thoughtgate"
"""The server id of the manager tools."""

MIN_APPROVAL_S: Final = 5.0
"""Nobody can read and answer an approval request faster."""

MIN_TIMEOUT_S: Final = 0.1
"""No process can answer faster."""

MIN_WINDOW_S: Final = 0.001
"""A limit over no time at all limits nothing."""

MIN_FACTS_S: Final = 1.0
"""Gates that share a store tell each other about facts within a second."""

MIN_ANSWER: Final = 65_536
"""The smallest limit for answers: an ordinary list of tools is longer than a few kilobytes."""

PROXY_WORDS: Final = frozenset({"none", "environment"})

_MAY_BE_NULL: Final = ("when", "annotations")
"""Conditions may compare with null."""

_LIMITS: Final = ("rate", "budget", "duplicate", "breaker")

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
GATES_HEADERS: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "mcp-session-id",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that say where a request goes, where it ends, and to which session it belongs. If there
were a second one, two readers of a request could disagree about that."""

_HEADER_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_POSTGRES_URL: Final = re.compile(r"postgres(ql)?://([^/?#@]*@)?[^/?#@]+/[^/?#]+")
_URL: Final = re.compile(r"[^\s\x00-\x1f\x7f]+")
_ISSUER: Final = re.compile(r"[^\s#\x00-\x1f\x7f]{1,256}")
"""An issuer is the part of a principal before ``#``, so it must not contain one."""


def check(data: dict[str, Any], channels: Callable[[], Collection[str]] = tuple) -> Found:
    """Yield the path and a message for each contradiction between keys.

    ``channels`` returns the names of the approval channels that packages provide.
    """
    yield from _empty(data, ())
    yield from _servers(_map(data, "servers"))
    yield from _told_apart(_map(data, "servers"), data.get("separator", "."))
    yield from _rules(data)
    yield from _limits(data)
    yield from _at_least(("facts", "window"), _map(data, "facts").get("window"), MIN_FACTS_S)
    for name, workflow in _map(data, "approval").items():
        if isinstance(workflow, dict):
            yield from _workflow(("approval", name), workflow)
            yield from _who_signs_in(("approval", name), workflow, data)
            yield from _channel(("approval", name), workflow, channels)
    yield from _listen(_map(data, "listen"))
    yield from _console(data)
    yield from _namespaces(data)
    yield from _places(data)


def _empty(value: Any, path: Path) -> Found:
    """Refuse a key without a value: ``tool:`` left blank would mean every tool."""
    if value is None:
        yield path, EMPTY
    elif isinstance(value, dict):
        for key, member in value.items():
            if key not in _MAY_BE_NULL or path[:1] != ("rules",):
                yield from _empty(member, (*path, key))
    elif isinstance(value, list):
        for at, member in enumerate(value):
            yield from _empty(member, (*path, at))


def _map(data: Any, key: str) -> dict[str, Any]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _maps(data: Any, key: str) -> list[tuple[int, dict[str, Any]]]:
    value = data.get(key) if isinstance(data, dict) else None
    members = enumerate(value if isinstance(value, list) else [])
    return [(at, member) for at, member in members if isinstance(member, dict)]


def _texts(value: Any) -> list[str]:
    members = value if isinstance(value, list) else [value]
    return [member for member in members if isinstance(member, str)]


def _seconds(value: Any) -> float | None:
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _servers(servers: dict[str, Any]) -> Found:
    seen: dict[str, str] = {}
    for key, server in servers.items():
        path: Path = ("servers", key)
        if key != "*":
            yield from _server_id(path, key, seen)
        if isinstance(server, dict):
            yield from _server(path, key, server)


def _told_apart(servers: dict[str, Any], separator: Any) -> Found:
    """Refuse ids that let one server list a tool under the name of another server's tool."""
    if not isinstance(separator, str):
        return
    ids = [key for key in servers if isinstance(key, str)]
    for one in ids:
        for other in (*ids, RESERVED_ID):
            if one != other and (one + separator).startswith(other + separator):
                words = f"with this separator, its tools could be mistaken for tools of {other!r}"
                yield ("servers", one), f"{words}; choose another id or separator"


def _server_id(path: Path, key: str, seen: dict[str, str]) -> Found:
    if not key or "." in key or "/" in key or not key.isprintable() or key != key.strip():
        yield path, "a server id must be a printable word without dots and slashes"
    if key.startswith("_"):
        yield path, "a server id must not start with _"
    if key.lower() == RESERVED_ID:
        yield path, f"{RESERVED_ID} is reserved for the gate's own tools; choose another id"
    if other := seen.get(key.lower()):
        yield path, f"differs from {other} only in case; choose another id"
    seen.setdefault(key.lower(), key)


def _server(path: Path, key: str, server: dict[str, Any]) -> Found:
    command, url = server.get("command"), server.get("url")
    if key == "*" and (command or url):
        words = "'*' stands for all servers that are not listed"
        yield path, f"{words}, so it cannot have a command or url"
    if command and url:
        yield (*path, "command"), "url is set too; keep one of them"
    for field, needs, present in (
        ("args", "command", command),
        ("cwd", "command", command),
        ("headers", "url", url),
        ("auth", "url", url),
        ("transport", "url", url),
        ("tls", "url", url),
        ("proxy", "url", url),
        ("max_answer", "url", url),
    ):
        if server.get(field) and not present:
            yield (*path, field), f"requires {needs}"
    headers = {name.lower() for name in _map(server, "headers")}
    secret = bool(server.get("auth")) or "authorization" in headers
    yield from _address((*path, "url"), url, secure=secret, credentials="auth with token_env")
    auth = _map(server, "auth")
    if auth:
        yield from check_server_auth((*path, "auth"), auth)
    for field in ("issuer", "client_metadata_url"):
        yield from _address((*path, "auth", field), auth.get(field), secure=True)
    for field in ("timeout", "start_timeout", "connect_timeout"):
        yield from _at_least((*path, field), server.get(field), MIN_TIMEOUT_S)
    yield from _handed_over(path, server)
    yield from _connection(path, server)


def _connection(path: Path, server: dict[str, Any]) -> Found:
    """Check how an HTTP server is reached: its certificates, a proxy, the limit of answers."""
    tls, proxy = _map(server, "tls"), server.get("proxy")
    if tls and str(server.get("url", "")).startswith("http://"):
        yield (*path, "tls"), "has no effect on an http:// URL; use https://, or remove it"
    for key, other in (("client_cert", "client_key"), ("client_key", "client_cert")):
        if tls.get(key) and not tls.get(other):
            yield (*path, "tls", other), f"required with {key}"
    if isinstance(proxy, str) and proxy not in PROXY_WORDS and (fault := proxy_fault(proxy)):
        yield (*path, "proxy"), f"{fault}, or be none or environment"
    try:
        size = parse_size(str(server.get("max_answer", MIN_ANSWER)))
    except ValueError:
        return
    if size < MIN_ANSWER:
        yield (*path, "max_answer"), f"must be at least {MIN_ANSWER} bytes"


def proxy_fault(url: str) -> str:
    """Return what is wrong with the URL of an HTTP proxy; it is not quoted, as for passwords in it."""
    try:
        parts = urlsplit(url)
        is_usable = bool(parts.scheme == "http" and parts.hostname and parts.port != 0)
    except ValueError:
        is_usable = False
    if is_usable and _URL.fullmatch(url) and not parts.path.strip("/") and not parts.query:
        return ""
    return "must be http://HOST:PORT; other kinds of proxies are not supported"


def _handed_over(path: Path, server: dict[str, Any]) -> Found:
    """Check what is passed to a process or request: no value may reach into the next one."""
    for field in ("command", "cwd"):
        if "\0" in str(server.get(field, "")):
            yield (*path, field), "must not contain a NUL character"
    for at, text in enumerate(_texts(server.get("args") or [])):
        if "\0" in text:
            yield (*path, "args", at), "must not contain a NUL character"
    for name, value in _map(server, "env").items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            words = "the name must not be empty or contain ="
            yield (*path, "env", name), f"{words}, and neither part may contain a NUL character"
    for name, value in _map(server, "headers").items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(str(value)):
            words = "must be a valid header name with a value on a single line"
            yield (*path, "headers", name), words
        elif name.lower() in GATES_HEADERS:
            yield (*path, "headers", name), "is a header that the gate sets itself; remove it"


def _at_least(path: Path, value: Any, least_s: float) -> Found:
    seconds = _seconds(value)
    if seconds is not None and seconds < least_s:
        yield path, f"must be at least {least_s:g}s (got {value!r})"


def _address(path: Path, url: Any, *, secure: bool, credentials: str = "") -> Found:
    """Check a URL, if there is one; if a secret is sent to it, it must be https or on loopback.

    ``credentials`` names the key for a user name and password, if there is one.
    """
    if not isinstance(url, str) or not url:
        return
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host or port == 0 or not _URL.fullmatch(url):
        yield path, "must be an http:// or https:// URL with a host"
    elif parts.username is not None or parts.password is not None:
        instead = f"; use {credentials}" if credentials else ""
        yield path, f"must not contain a user name or password{instead}"
    elif secure and parts.scheme == "http" and not is_loopback(host):
        yield path, "must be https://, because a secret is sent to another machine"


def is_loopback(host: str) -> bool:
    """Return whether a host can only be this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _selector(path: Path, entry: dict[str, Any], data: dict[str, Any]) -> Found:
    named = [key for key in KINDS if entry.get(key) is not None]
    if len(named) > 1:
        yield path, f"has both {' and '.join(named)}; write one entry for each"
    kind = entry.get("kind")
    if named and isinstance(kind, str) and kind != named[0]:
        yield (*path, "kind"), f"must be {named[0]} or be left out, because {named[0]}: is set"
    servers = _map(data, "servers")
    # Then servers without an entry may be meant.
    if not servers or "*" in servers:
        return
    for server in _texts(entry.get("server")):
        if server not in {*servers, RESERVED_ID} and not is_glob(server):
            yield (*path, "server"), f"no server {server!r}; the servers are {', '.join(servers)}"


def _unique_ids(section: str, entries: list[tuple[int, dict[str, Any]]]) -> Found:
    seen: dict[str, int] = {}
    for at, entry in entries:
        name = entry.get("id")
        if isinstance(name, str) and name:
            if name in seen:
                yield (section, at, "id"), f"{name!r} is already the id of {section}[{seen[name]}]"
            seen.setdefault(name, at)


def _rules(data: dict[str, Any]) -> Found:
    entries = _maps(data, "rules")
    yield from _unique_ids("rules", entries)
    for key in ("default", "server_requests"):
        if data.get(key) == "policy" and not data.get("cedar"):
            yield (key,), "policy asks Cedar, but there are no policies under cedar"
    for at, rule in entries:
        path: Path = ("rules", at)
        action, approval = rule.get("action"), rule.get("approval")
        yield from _selector(path, rule, data)
        if action == "policy" and not data.get("cedar"):
            yield (*path, "action"), "policy asks Cedar, but there are no policies under cedar"
        if rule.get("annotations") and action not in ("deny", "approve"):
            words = "only for deny and approve: the server writes annotations"
            yield (*path, "annotations"), f"{words}, so they cannot grant access"
        if rule.get("when_facts") and action not in ("deny", "approve"):
            words = "only for deny and approve: facts are reasons for more care"
            yield (*path, "when_facts"), f"{words}, so they cannot grant access"
        if rule.get("scope") and action == "deny":
            yield (*path, "scope"), "has no effect with action: deny; remove it"
        if approval and action != "approve":
            yield (*path, "approval"), "only for rules with action: approve"
        known = {"default", *_map(data, "approval")}
        if isinstance(approval, str) and approval and approval not in known:
            words = f"no workflow {approval!r} under approval"
            yield (*path, "approval"), f"{words}; the workflows are {', '.join(sorted(known))}"


def _limits(data: dict[str, Any]) -> Found:
    entries = _maps(data, "limits")
    yield from _unique_ids("limits", entries)
    for at, limit in entries:
        yield from _selector(("limits", at), limit, data)
        if all(limit.get(key) is None for key in _LIMITS):
            yield ("limits", at), f"limits nothing; add one of {', '.join(_LIMITS)}"
        yield from _at_least(("limits", at, "duplicate"), limit.get("duplicate"), MIN_WINDOW_S)
        for key in ("within", "cooldown"):
            value = _map(limit, "breaker").get(key)
            yield from _at_least(("limits", at, "breaker", key), value, MIN_WINDOW_S)


def _workflow(path: Path, workflow: dict[str, Any]) -> Found:
    channel = workflow.get("channel", "console")
    for name in ("slack", "webhook"):
        if channel == name and not workflow.get(name):
            yield (*path, name), f"required when channel is {name}"
        if channel != name and workflow.get(name):
            yield (*path, name), f"is for channel: {name}, but the channel is {channel}"
    yield from _at_least((*path, "timeout"), workflow.get("timeout"), MIN_APPROVAL_S)
    approvers, required = workflow.get("approvers"), workflow.get("required")
    people = set(map(str, approvers)) if isinstance(approvers, list) else set()
    for at, name in enumerate(_texts(approvers or [])):
        if name in ("user:", "group:"):
            yield (*path, "approvers", at), f"must name somebody, such as {name}sre"
    # A group may have any number of members.
    has_group = any(name.startswith("group:") for name in people)
    if people and not has_group and isinstance(required, int) and required > len(people):
        yield (*path, "required"), f"requires {required} approvals, but lists fewer approvers"
    for section, key in (("webhook", "url"), ("slack", "api_url")):
        yield from _address((*path, section, key), _map(workflow, section).get(key), secure=True)


def _who_signs_in(path: Path, workflow: dict[str, Any], data: dict[str, Any]) -> Found:
    """Refuse approvers who must be signed in to answer, if nobody can sign in."""
    people = _texts(workflow.get("approvers") or [])
    are_signed_in = bool(people) and all(name.startswith(("user:", "group:")) for name in people)
    if are_signed_in and not _map(data, "console").get("sign_in"):
        words = "nobody could answer: user: and group: need console.sign_in; set it, or add a name"
        yield (*path, "approvers"), words


def _channel(
    path: Path, workflow: dict[str, Any], channels: Callable[[], Collection[str]]
) -> Found:
    """Check that a workflow's channel exists, and that only installed channels have options."""
    channel = workflow.get("channel", "console")
    if not isinstance(channel, str) or not channel:
        return
    if channel in BUILT_IN_CHANNELS:
        if "options" in workflow:
            words = f"only for channels that a package provides; {channel} is built in"
            yield (*path, "options"), words
    # Asked only for names that are not built in: looking for installed packages takes time.
    elif channel not in (installed := sorted(channels())):
        known = f"built in: {', '.join(BUILT_IN_CHANNELS)}"
        added = ", ".join(installed) or "none"
        yield (
            (*path, "channel"),
            f"no channel {channel!r}; {known}; from installed packages: {added}",
        )


def _listen(listen: dict[str, Any]) -> Found:
    transport, host, auth = listen.get("transport", "stdio"), listen.get("host"), listen.get("auth")
    if transport == "stdio" and auth:
        words = "only for transport: http; over stdio, the agent itself starts the gate"
        yield ("listen", "auth"), words
    is_remote = isinstance(host, str) and host and not is_loopback(host)
    if transport == "http" and is_remote and not auth:
        words = f"required when listening on {host}, which other machines can reach"
        yield ("listen", "auth"), words
    if transport == "stdio" and listen.get("tls"):
        yield ("listen", "tls"), "only for transport: http; nothing listens over stdio"
    if isinstance(auth, dict):
        yield from _listen_auth(auth)
        if auth.get("type") == "mtls" and not _map(listen, "tls").get("client_ca"):
            words = "required when listen.auth.type is mtls, so that clients show a certificate"
            yield ("listen", "tls", "client_ca"), words
    yield from _address(("listen", "public_url"), listen.get("public_url"), secure=False)
    if listen.get("admin_port") and listen.get("admin_port") == listen.get("port"):
        yield ("listen", "admin_port"), "must differ from port"


_AUTH_NEEDS: Final[dict[str, set[str]]] = {
    "bearer": {"token_env"},
    "ip_allowlist": {"allow"},
    "both": {"token_env", "allow"},
    "jwt": {"jwks_url", "issuer", "audience"},
    "mtls": set(),
}
_AUTH_MAY: Final = {"jwt": {"principal_claim", "ca"}}


def _listen_auth(auth: dict[str, Any]) -> Found:
    path: Path = ("listen", "auth")
    kind = str(auth.get("type"))
    needs = _AUTH_NEEDS.get(kind)
    # ``read_keys`` reports the unknown type.
    if needs is None:
        return
    for key in sorted(needs):
        if not auth.get(key):
            yield (*path, key), f"required when type is {kind}"
    others = {key for keys in (*_AUTH_NEEDS.values(), *_AUTH_MAY.values()) for key in keys}
    for key in sorted(others - needs - _AUTH_MAY.get(kind, set())):
        if auth.get(key) is not None:
            yield (*path, key), f"has no effect when type is {kind}; remove it"
    yield from _ranges((*path, "allow"), auth.get("allow"))
    yield from _address((*path, "jwks_url"), auth.get("jwks_url"), secure=True)
    issuer = auth.get("issuer")
    if isinstance(issuer, str) and issuer and not _ISSUER.fullmatch(issuer):
        words = "must be the issuer as its tokens name it"
        yield (*path, "issuer"), f"{words}: at most 256 characters, without spaces and #"


def _ranges(path: Path, value: Any) -> Found:
    for at, text in enumerate(_texts(value or [])):
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            yield (*path, at), f"must be an address range such as 10.0.0.0/8 (got {text!r})"


_TAKEN_HEADERS: Final = frozenset(
    {"host", "origin", "cookie", "connection", "content-length", "content-type", "x-forwarded-for"}
)
"""Headers that have another meaning, and that a client sets itself."""


def _console(data: dict[str, Any]) -> Found:
    console, path = _map(data, "console"), ("console",)
    sign_in, host = console.get("sign_in"), console.get("host")
    is_remote = isinstance(host, str) and host and not is_loopback(host)
    yield from _address((*path, "public_url"), console.get("public_url"), secure=True)
    if isinstance(sign_in, dict):
        yield from _sign_in(data, console, sign_in, is_remote=bool(is_remote))
        return
    if is_remote:
        words = f"required when listening on {host}, which other machines can reach"
        yield (*path, "sign_in"), words
    for key in ("public_url", "tls"):
        if console.get(key):
            yield (*path, key), "only with sign_in; the one-time link is for this machine"


def _sign_in(
    data: dict[str, Any], console: dict[str, Any], sign_in: dict[str, Any], *, is_remote: bool
) -> Found:
    path: Path = ("console", "sign_in")
    public, token = console.get("public_url"), _map(sign_in, "jwt")
    if not public:
        yield ("console", "public_url"), "required with sign_in: the URL that browsers use"
    elif isinstance(public, str) and urlsplit(public).path.strip("/"):
        yield ("console", "public_url"), "must have no path: the console needs a host of its own"
    yield from _address((*path, "jwt", "jwks_url"), token.get("jwks_url"), secure=True)
    audience = _map(_map(data, "listen"), "auth").get("audience")
    if audience and audience == token.get("audience"):
        words = "must differ from listen.auth.audience"
        yield (*path, "jwt", "audience"), f"{words}, or an agent could sign in with its own token"
    if str(sign_in.get("header", "")).lower() in _TAKEN_HEADERS:
        yield (*path, "header"), "must be a header that only carries the token"
    proxies = sign_in.get("trusted_proxies")
    yield from _ranges((*path, "trusted_proxies"), proxies)
    if not console.get("tls"):
        if is_remote and not proxies:
            words = "required without tls: the addresses of the proxy"
            yield (*path, "trusted_proxies"), words
        for at, text in enumerate(_texts(proxies or [])):
            if text.endswith("/0"):
                words = "trusts every address; name the proxy's own, or configure tls"
                yield (*path, "trusted_proxies", at), words
    out = sign_in.get("sign_out_url")
    if isinstance(out, str) and out and not re.fullmatch(r"/[^/\\\s]\S*|https://\S+", out):
        yield (*path, "sign_out_url"), "must be a path on the same host, or an https:// URL"


def _namespaces(data: dict[str, Any]) -> Found:
    servers, namespaces = _map(data, "servers"), _map(data, "namespaces")
    for name, ids in namespaces.items():
        for at, server in enumerate(ids if isinstance(ids, list) else []):
            if isinstance(server, str) and (server not in servers or server == "*"):
                yield ("namespaces", name, at), f"no server {server!r} under servers"
    default = data.get("default_namespace")
    if isinstance(default, str) and default and default not in namespaces:
        known = ", ".join(namespaces) or "none"
        yield ("default_namespace",), f"no namespace {default!r}; the namespaces are {known}"


def _places(data: dict[str, Any]) -> Found:
    """Check where data is written and stored."""
    audit = _map(data, "audit")
    if audit.get("sink") == "stdout" and _map(data, "listen").get("transport", "stdio") == "stdio":
        words = "stdout carries MCP while listen.transport is stdio; use file or stderr"
        yield ("audit", "sink"), words
    if audit.get("file") and audit.get("sink", "file") != "file":
        yield ("audit", "file"), f"has no effect when sink is {audit.get('sink')}; remove it"
    store = data.get("store", "sqlite")
    if isinstance(store, str) and store != "sqlite" and not _POSTGRES_URL.match(store):
        yield ("store",), "must be sqlite or postgresql://USER@HOST/DATABASE"
    tasks = _map(data, "tasks")
    ttl, most = _seconds(tasks.get("ttl")), _seconds(tasks.get("max_ttl"))
    if ttl is not None and most is not None and ttl > most:
        yield ("tasks", "ttl"), "must not be longer than max_ttl"
    endpoint = _map(_map(data, "telemetry"), "otlp").get("endpoint")
    path = ("telemetry", "otlp", "endpoint")
    yield from _address(path, endpoint, secure=False, credentials="headers")
