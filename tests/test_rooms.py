"""The import rules: which package may import which, what pure packages may use, what a shim loads.

Packages of ours are the parts directly below ``thoughtgate``.
"""

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from tools.source_tree import (
    Module,
    dotted,
    find_cycle,
    find_rings,
    imports_of,
    module_graph,
    package_of,
    read_modules,
)

_LOWER: Final = ("version", "errors", "wire", "policy")
_GATE_BELOW: Final = (
    *_LOWER,
    "config",
    "core",
    "analysis",
    "record",
    "stores",
    "channels",
    "telemetry",
    "transports",
    "process",
)
_SIDES_BELOW: Final = (*_GATE_BELOW, "gate")
_PRODUCTS_BELOW: Final = (*_SIDES_BELOW, "front", "upstream")
_PRODUCTS: Final = ("shim", "service", "proxy", "hub", "wrap")

ALLOWED_IMPORTS: Final[dict[str, tuple[str, ...]]] = {
    "version": (),
    "errors": (),
    "wire": ("errors",),
    "policy": ("errors", "wire"),
    "config": _LOWER,
    "core": _LOWER,
    "analysis": (*_LOWER, "config", "core"),
    "record": (*_LOWER, "core", "stores"),
    "stores": (*_LOWER, "core"),
    "channels": (*_LOWER, "core"),
    "telemetry": (*_LOWER, "core"),
    "transports": ("errors", "wire"),
    "process": ("errors", "wire"),
    "agents": ("errors", "config"),
    "gate": _GATE_BELOW,
    "front": (*_SIDES_BELOW, "upstream"),
    "upstream": _SIDES_BELOW,
    "shim": _PRODUCTS_BELOW,
    "service": _PRODUCTS_BELOW,
    "proxy": _PRODUCTS_BELOW,
    "hub": _PRODUCTS_BELOW,
    "wrap": (*_PRODUCTS_BELOW, "agents", "service"),
    "status": (*_PRODUCTS_BELOW, "agents"),
    "web": (*_PRODUCTS_BELOW, "agents", "status"),
    "cli": (*_PRODUCTS_BELOW, "agents", "status", "web", *_PRODUCTS),
    "testing": (*_LOWER, "config", "core", "channels"),
    "embed": _SIDES_BELOW,
    "__main__": ("cli",),
}
"""Package -> packages of ours that it may import. Nobody imports ``testing``, and only the root ``embed``."""

PURE: Final = ("version", "errors", "wire", "policy", "config", "core", "analysis")

IMPURE_IMPORTS: Final = frozenset(
    {
        "aiohttp",
        "anyio",
        "cffi",
        "ctypes",
        "asyncio",
        "concurrent",
        "curio",
        "fcntl",
        "ftplib",
        "getpass",
        "glob",
        "http",
        "httptools",
        "httpx",
        "importlib.resources",
        "logging",
        "mmap",
        "multiprocessing",
        "pty",
        "queue",
        "random",
        "redis",
        "requests",
        "sched",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "slack_sdk",
        "smtplib",
        "socket",
        "socketserver",
        "sqlite3",
        "ssl",
        "starlette",
        "subprocess",
        "tempfile",
        "termios",
        "threading",
        "trio",
        "urllib.request",
        "uuid",
        "uvicorn",
        "uvloop",
    }
)
"""Modules that do input or output, read the clock, are random or run code concurrently."""

IMPURE_CALLS: Final = frozenset(
    {"open", "print", "input", "breakpoint", "exec", "eval", "__import__"}
)

ALLOWED_PARTS: Final[dict[str, frozenset[str]]] = {
    "os": frozenset({"fspath", "sep", "path", "PathLike"}),
    "os.path": frozenset(
        {"join", "basename", "dirname", "normpath", "isabs", "splitext", "commonpath"}
    ),
    "time": frozenset({"gmtime", "struct_time", "strftime"}),
    "pathlib": frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"}),
    "sys": frozenset({"intern", "maxsize", "version_info", "platform"}),
}
"""Modules of which a pure package may use these names and no other."""

IMPURE_METHODS: Final = frozenset({"now", "utcnow", "today"})
"""Reading the clock through ``datetime`` or ``date``."""

TOO_BIG_FOR_A_SHIM: Final = frozenset(
    {
        "asyncio",
        "dataclasses",
        "hashlib",
        "inspect",
        "pydantic",
        "orjson",
        "http.client",
        "cedarpy",
        "ruamel.yaml",
        "typer",
        "rich",
        "ssl",
        "email",
        "logging",
    }
)
"""Each costs a shim megabytes or tens of milliseconds; it has 15 MB and 100 ms."""

MAX_MODULES: Final = 25
"""Modules of one package; its sub-packages are counted separately."""

RINGS_FOR_TYPING: Final[list[frozenset[str]]] = []
"""Modules that name each other's types. Nothing else may, and none do so when the program runs."""

SERVICE_SHIM: Final = """
thoughtgate
thoughtgate.cli
thoughtgate.cli.entry
thoughtgate.core
thoughtgate.core.answers
thoughtgate.core.commands
thoughtgate.core.contents
thoughtgate.core.contents.inspected_answers
thoughtgate.core.elicitation
thoughtgate.core.events
thoughtgate.core.record_events
thoughtgate.core.server_requests
thoughtgate.core.session
thoughtgate.core.session_replies
thoughtgate.core.task
thoughtgate.core.task_calls
thoughtgate.core.tool_listing
thoughtgate.errors
thoughtgate.gate
thoughtgate.gate.authority
thoughtgate.gate.clock
thoughtgate.gate.outbox
thoughtgate.gate.poll_loop
thoughtgate.gate.run_file
thoughtgate.gate.session_driver
thoughtgate.gate.state_directory
thoughtgate.gate.task_messages
thoughtgate.policy
thoughtgate.policy.call
thoughtgate.process
thoughtgate.process.guardian
thoughtgate.process.launch
thoughtgate.process.server_process
thoughtgate.shim
thoughtgate.shim.command
thoughtgate.shim.event_queue
thoughtgate.shim.service_authority
thoughtgate.shim.service_connection
thoughtgate.shim.service_handshake
thoughtgate.stores
thoughtgate.stores.directory_owners
thoughtgate.transports
thoughtgate.transports.nonblocking_writer
thoughtgate.wire
thoughtgate.wire.extra_params
thoughtgate.wire.frame
thoughtgate.wire.lines
thoughtgate.wire.message
thoughtgate.wire.methods
thoughtgate.wire.packed_message
thoughtgate.wire.replies
thoughtgate.wire.revisions
thoughtgate.wire.unchecked
"""
"""Every module of ours that a shim under ``wrap`` imports."""

MODULES: Final = read_modules()
PURE_MODULES: Final = [module for module in MODULES if module.package in PURE]


def _breaches(module: Module) -> Iterator[str]:
    for imported in imports_of(module):
        package = package_of(imported)
        where = f"{module.path.name}:{imported.line}"
        if package is None or package == module.package:
            continue
        if not package:
            yield f"{where}: imports the root package"
        elif package not in ALLOWED_IMPORTS[module.package]:
            yield f"{where}: {module.package} imports {package}"


def _impure_imports(module: Module) -> Iterator[str]:
    for imported in imports_of(module):
        full = f"{imported.module}.{imported.thing}" if imported.thing else imported.module
        parts = full.split(".")
        bad = {".".join(parts[:n]) for n in range(1, len(parts) + 1)} & IMPURE_IMPORTS
        if bad:
            yield f"{module.path.name}:{imported.line}: imports {min(bad)}"
        allowed = ALLOWED_PARTS.get(imported.module)
        if imported.thing and allowed is not None and imported.thing not in allowed:
            yield f"{module.path.name}:{imported.line}: takes {full}"


def _impure_uses(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield f"{module.path.name}:{line}: async"
        elif isinstance(node, ast.Call):
            called = dotted(node.func)
            is_clock = called.rpartition(".")[2] in IMPURE_METHODS and "date" in called
            if called in IMPURE_CALLS or is_clock:
                yield f"{module.path.name}:{line}: calls {called}"
        elif isinstance(node, ast.Attribute):
            owner = dotted(node.value)
            allowed = ALLOWED_PARTS.get(owner)
            if allowed is not None and node.attr not in allowed:
                yield f"{module.path.name}:{line}: uses {owner}.{node.attr}"


def test_every_package_stands_in_the_table() -> None:
    unknown = {module.package for module in MODULES if module.package} - set(ALLOWED_IMPORTS)

    assert not unknown


def test_no_package_imports_what_the_table_does_not_allow() -> None:
    breaches = [
        breach
        for module in MODULES
        if module.package in ALLOWED_IMPORTS
        for breach in _breaches(module)
    ]

    assert not breaches, "\n".join(breaches)


def test_no_packages_import_each_other_in_a_ring() -> None:
    edges: dict[str, set[str]] = {}
    for module in MODULES:
        reached = {package_of(imported) for imported in imports_of(module)}
        edges.setdefault(module.package, set()).update(
            package for package in reached if package and package != module.package
        )

    assert find_cycle(edges) == []
    assert find_cycle({package: set(below) for package, below in ALLOWED_IMPORTS.items()}) == []


def test_no_modules_of_a_package_import_each_other_in_a_ring() -> None:
    # The root package only lends names, lazily, and the version, which some modules take from it.
    modules = [module for module in MODULES if module.package]

    assert find_rings(module_graph(modules, typing=False)) == []
    assert find_rings(module_graph(modules, typing=True)) == RINGS_FOR_TYPING


def test_no_package_has_too_many_modules() -> None:
    modules = [module for module in MODULES if module.path.name != "__init__.py"]
    sizes = Counter(module.name.rpartition(".")[0] for module in modules)
    crowded = {name: size for name, size in sizes.items() if size > MAX_MODULES}

    assert not crowded


@pytest.mark.requirement("NFR-S3")
def test_pure_packages_import_nothing_that_does_input_or_output() -> None:
    found = [line for module in PURE_MODULES for line in _impure_imports(module)]

    assert not found, "\n".join(found)


def test_pure_packages_use_no_files_clock_chance_console_or_coroutines() -> None:
    found = [line for module in PURE_MODULES for line in _impure_uses(module)]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio",
        "from urllib.request import urlopen",
        "import http.client",
        "from time import monotonic",
        "from os import environ",
        "from pathlib import Path",
        "def late():\n    import socket",
        "import typing\nif typing.TYPE_CHECKING:\n    import logging",
    ],
)
def test_an_impure_import_is_found(text: str) -> None:
    sample = MODULES[0]._replace(tree=ast.parse(text))

    assert list(_impure_imports(sample))


@pytest.mark.parametrize(
    "text",
    [
        "open('x')",
        "print(1)",
        "import os\nos.environ['A']",
        "import time\ntime.time()",
        "from datetime import datetime\ndatetime.now()",
        "async def f(): ...",
        "import sys\nsys.stdout",
    ],
)
def test_an_impure_use_is_found(text: str) -> None:
    sample = MODULES[0]._replace(tree=ast.parse(text))

    assert list(_impure_uses(sample))


def test_a_breach_of_the_table_is_found() -> None:
    text = "def late():\n    from thoughtgate.gate import poll_loop\n"
    sample = MODULES[0]._replace(package="wire", tree=ast.parse(text))

    assert list(_breaches(sample))


def test_the_root_package_offers_what_lies_below_the_products() -> None:
    (root,) = [module for module in MODULES if not module.package]
    reached = {package_of(imported) for imported in imports_of(root)} - {None}

    assert reached <= {"embed", *ALLOWED_IMPORTS["embed"]}


def test_importing_the_root_package_imports_nothing_else() -> None:
    assert _loaded_by("import thoughtgate") - _loaded_by("") == {"thoughtgate"}


def _loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, timeout=30
    ).stdout
    return set(json.loads(output))


_IMPORT_SERVICE_SHIM: Final = (
    "import thoughtgate.cli.entry, thoughtgate.shim.command, thoughtgate.shim.service_authority"
)
"""The entry point, and the two modules that it imports step by step for such a shim."""


def test_a_shim_that_asks_the_service_loads_nothing_big() -> None:
    # What a bare interpreter loads (path files of the virtual environment) is not the shim's.
    loaded = _loaded_by(_IMPORT_SERVICE_SHIM) - _loaded_by("")

    assert not loaded & TOO_BIG_FOR_A_SHIM


def test_a_shim_that_asks_the_service_loads_these_modules_of_ours_and_no_others() -> None:
    loaded = _loaded_by(_IMPORT_SERVICE_SHIM) - _loaded_by("")

    assert sorted(_ours(loaded)) == SERVICE_SHIM.split()


def _ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "thoughtgate"}
