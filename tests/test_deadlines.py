"""No test, benchmark or tool waits without a limit: what never comes must fail, not hang."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tools.source_tree import ROOT, dotted

FOLDERS: Final = ("tests", "bench", "tools")
LOOPS: Final = frozenset({"asyncio.run", "anyio.run"})
EXCUSE: Final = "# no deadline: "
"""Stands in the line of a wait that something else limits, with what that is."""
RUNNERS: Final = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output"))  # fmt: skip


def _problem(call: ast.Call) -> str:
    """Say what is wrong with a call that may wait forever; empty for any other."""
    name = dotted(call.func)
    limited = "timeout" in {keyword.arg for keyword in call.keywords}
    if name in RUNNERS and not limited:
        return f"{name} without a timeout"
    if name.endswith(".communicate") and not limited and len(call.args) < 2:
        return "communicate without a timeout"
    if name.endswith((".stdout.readline", ".stderr.readline")):
        return "readline of a process: use read_line"
    if name == "os.waitpid" and ast.unparse(call.args[1]) == "0":
        return "waitpid: use reap"
    if name in LOOPS and not ast.unparse(call.args[0]).startswith("asyncio.wait_for("):
        return f"{name}: use run_async"
    return ""


def _problems(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (found := _problem(node)):
            yield node.lineno, found
        if isinstance(node, ast.With):
            for item in node.items:
                if ast.unparse(item.context_expr).startswith("subprocess.Popen("):
                    yield node.lineno, "with Popen waits at its end: use ending"


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_every_wait_has_a_deadline() -> None:
    found = []
    for path in _files():
        text = path.read_text("utf-8")
        lines = text.splitlines()
        found += [
            f"{path.relative_to(ROOT)}:{line} {problem}"
            for line, problem in _problems(ast.parse(text))
            if EXCUSE not in lines[line - 1]
        ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "subprocess.run(['true'])",
        "process.communicate(b'')",
        "process.stdout.readline()",
        "os.waitpid(pid, 0)",
        "asyncio.run(main())",
        "with subprocess.Popen(['true']) as process: pass",
    ],
)
def test_a_wait_without_a_deadline_is_found(text: str) -> None:
    assert list(_problems(ast.parse(text)))
