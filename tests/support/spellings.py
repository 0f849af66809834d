"""Generated spellings of denied names, URIs and arguments, for attacks on real servers."""

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.support.frames import call, request

SEED: Final = 20_260_728
COUNT: Final = 240

_STARTS: Final = (
    "file://",
    "file:",
    "file:/",
    "file:///",
    "file:////",
    "file:\\\\",
    "file://localhost",
    "file://LocalHost",
    "file://127.0.0.1",
    "file://x",
    "FILE://",
    "fIlE:",
)

_SECRETS: Final = ("secret://k:", "secret://@k", "secret://u@k:", "SECRET://@k:")
"""Authorities that parsers write without their empty parts."""

POLICIES: Final = {
    "default forward": """
schema: 1
default: forward
rules:
  - {tool: secret_tool, action: deny}
  - {resource: "secret://*", action: deny}
  - {resource: "file:///etc/*", action: deny}
  - {tool: use, when: {path: {under: /etc}}, action: deny}
  - {tool: use, when: {paths: {any: {under: /etc}}}, action: deny}
  - {tool: use, when: {amount: {gt: 1000}}, action: deny}
""",
    "default deny": """
schema: 1
default: deny
rules:
  - {resource: "note://*", action: forward}
  - {resource: "file:///tmp/*", action: forward}
  - {tool: use, when: {path: {under: /tmp}, paths: {exists: false}, amount: {le: 1000}},
     action: forward}
  - {tool: use, when: {paths: {all: {under: /tmp}}, path: {exists: false}}, action: forward}
""",
}
"""The same protection as a blocklist and as an allowlist."""


def honest_requests() -> list[dict[str, Any]]:
    """Return requests that both policies forward and every server answers."""
    return [
        call("h1", "use", {"path": "/tmp/x", "amount": 5}),
        call("h2", "use", {"amount": 1000, "path": "/tmp/a/../b"}),
        call("h3", "use", {"paths": ["/tmp/x", "/tmp/y"]}),
        request("h4", "resources/read", {"uri": "note://today"}),
        request("h5", "resources/read", {"uri": "file:///tmp/x"}),
        request("h6", "resources/read", {"uri": "file:///tmp/a-b_c.txt"}),
    ]


def attacks(seed: int = SEED, count: int = COUNT) -> Iterator[dict[str, Any]]:
    """Yield requests that reach what is denied, on some server."""
    chance = random.Random(seed)
    kinds: tuple[Callable[[random.Random], tuple[str, dict[str, Any]]], ...] = (
        lambda chance: ("resources/read", {"uri": _file_uri(chance)}),
        lambda chance: ("resources/read", {"uri": _disturbed("secret://k", chance)}),
        lambda chance: ("tools/call", {"name": "use", "arguments": _arguments(chance)}),
        lambda chance: ("tools/call", {"name": _disturbed("secret_tool", chance), "arguments": {}}),
    )
    weights = (5, 2, 5, 1)
    for number in range(count):
        (make,) = chance.choices(kinds, weights)
        yield request(number, *make(chance))
    for number, uri in enumerate(_SECRETS, count):
        yield request(number, "resources/read", {"uri": uri})


def _file_uri(chance: random.Random) -> str:
    path = chance.choice(
        [
            "/etc/passwd",
            "/tmp/../etc/passwd",
            "/tmp/./../etc//passwd",
            "//etc/passwd",
            "/../etc/passwd",
            "/etc/x/../passwd",
            "/tmp/x\\../../etc/passwd",
            "/tmp/x/..\\..\\etc\\passwd",
        ]
    )
    if chance.random() < 0.3:
        path = path.replace("/", "\\", chance.randint(1, 3))
    for _ in range(chance.choice([0, 0, 1, 1, 2, 3])):
        path = "".join(
            f"%{ord(char):02{chance.choice('xX')}}" if chance.random() < 0.3 else char
            for char in path
        )
    start = chance.choice(_STARTS)
    if chance.random() < 0.15:
        path = path.removeprefix("/")
    uri = start + path + chance.choice(["", "", "", "?x", "#x", "?a/../b"])
    return _disturbed(uri, chance) if chance.random() < 0.3 else uri


def _disturbed(text: str, chance: random.Random) -> str:
    """Insert characters that parsers remove, or change the case."""
    if chance.random() < 0.3:
        return "".join(chance.choice([char, char.upper()]) for char in text)
    for _ in range(chance.randint(1, 3)):
        at = chance.choice([0, len(text), chance.randint(0, len(text))])
        text = text[:at] + chance.choice(" \t\n\r\x00\x01\x1f\x7f\x85\u00a0\ufeff") + text[at:]
    return text


def _variant(key: str, chance: random.Random) -> str:
    letters = {"s": "sS\u017f", "k": "kK\u212a"}
    return "".join(chance.choice(letters.get(char, char + char.upper())) for char in key)


def _arguments(chance: random.Random) -> dict[str, Any]:
    path = chance.choice(
        ["/etc/passwd", "/tmp/../etc/passwd", "//etc/passwd", "/etc/./x", "/tmp/./../../etc/x"]
    )
    choices: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"path": "/tmp/x", "amount": 5}, {"path": path}),
        ({"path": "/tmp/x", "amount": 5}, {"amount": 5000}),
        ({"paths": ["/tmp/x"]}, {"paths": ["/tmp/x", path]}),
        ({}, {"path": path, "amount": 1}),
    ]
    honest, denied = chance.choice(choices)
    varied = {_variant(key, chance): value for key, value in denied.items()}
    members = [*({} if chance.random() < 0.4 else honest).items(), *varied.items()]
    chance.shuffle(members)
    return dict(members)
