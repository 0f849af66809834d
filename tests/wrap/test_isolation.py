"""Nothing that an agent's config can set reaches the gate's own processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server, thoughtgate
from tests.support.wraps import Machine, entry, kind_of

DENY_ECHO = "schema: 1\ndefault: forward\nrules:\n  - {tool: echo, action: deny}\n"

HIJACK = """\
import os, sys
if "shim" in sys.orig_argv:
    words = sys.orig_argv[sys.orig_argv.index("--") + 1:]
    os.execvp(words[0], words)
"""
"""Replaces a shim by the server behind it, before the shim's first line runs."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, DENY_ECHO)


def _environ(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)


@pytest.mark.promise("entry-environment")
def test_a_module_on_the_python_path_of_an_entry_does_not_replace_the_shim(
    machine: Machine,
) -> None:
    evil = machine.project / "evil"
    evil.mkdir()
    (evil / "sitecustomize.py").write_text(HIJACK, "utf-8")
    original = machine.write_sample(env={"PYTHONPATH": str(evil), "OTHER": "kept"})

    with machine.wrap("--strict") as run:
        run.open()
        assert kind_of(run.call("echo", {"text": "x"})) == "governance_denied"
        assert _environ(run.shims["sample"])["PYTHONPATH"] == ""
        got = _environ(run.pid_of_server())
        assert run.finish() == 0

    assert (got["PYTHONPATH"], got["OTHER"]) == (str(evil), "kept")
    assert "governed  1 server: sample" in run.stderr
    assert machine.config.read_bytes() == original


@pytest.mark.promise("entry-environment")
def test_a_preloaded_library_is_loaded_by_the_server_and_not_by_the_gate(
    machine: Machine,
) -> None:
    library = _library(machine.top)
    machine.write_sample(env={"LD_PRELOAD": str(library)})

    with machine.wrap() as run:
        run.open()
        shim, server = run.shims["sample"], run.pid_of_server()
        loaded = [str(library) in Path(f"/proc/{pid}/maps").read_text() for pid in (shim, server)]
        assert run.finish() == 0

    assert loaded == [False, True]


@pytest.mark.promise("entry-environment")
@pytest.mark.parametrize(
    "name", ["OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "SSL_CERT_FILE"]
)
def test_a_module_for_openssl_is_not_offered_to_the_gate(machine: Machine, name: str) -> None:
    machine.write_sample(env={name: str(machine.top / "evil")})

    with machine.wrap() as run:
        run.open()
        gate, server = _environ(run.shims["sample"]), _environ(run.pid_of_server())
        assert run.finish() == 0

    assert (gate[name], server[name]) == ("", str(machine.top / "evil"))


@pytest.mark.promise("entry-environment")
@pytest.mark.parametrize(
    "name", ["HOME", "XDG_STATE_HOME", "THOUGHTGATE_STATE_DIR", "THOUGHTGATE_PROFILE", "SUB_RUN_ID"]
)
def test_a_variable_of_an_entry_does_not_move_or_loosen_the_gate(
    machine: Machine, name: str
) -> None:
    value = "development" if name.endswith("PROFILE") else str(machine.top / "elsewhere")
    machine.write_sample(env={name: value})

    with machine.wrap() as run:
        run.open()
        assert kind_of(run.call("echo", {"text": "x"})) == "governance_denied"
        got = _environ(run.pid_of_server())
        assert run.finish() == 0

    assert got[name] == value
    assert not (machine.top / "elsewhere").exists()
    assert {one["run_id"] for one in machine.events("tool_call_decision")} == {
        machine.events("run_start")[0]["run_id"]
    }


def test_the_server_gets_the_variables_that_it_would_get_without_the_gate(
    machine: Machine,
) -> None:
    env = {"HOME": "/h", "LD_LIBRARY_PATH": "/l", "XDG_CACHE_HOME": "/c", "PLAIN": "p"}
    machine.write_sample(env=env)
    own = {"THOUGHTGATE_STATE_DIR", "THOUGHTGATE_CONFIG", "THOUGHTGATE_ACTIVE"}

    with machine.wrap() as run:
        run.open()
        agent, server = _environ(run.agent_pid), _environ(run.pid_of_server())
        assert run.finish() == 0

    expected = {**agent, **env}
    assert server == {name: value for name, value in expected.items() if name not in own}


def test_a_value_that_only_the_agent_knows_keeps_the_server_from_starting(
    machine: Machine,
) -> None:
    original = machine.write_config(
        {"sample": entry(env={"PYTHONPATH": "${input:path}"}), "fine": entry()}
    )

    with machine.wrap() as run:
        run.wait_until_ready()
        text = run.order("text")["said"]
        run.order("open", greet=False)
        assert run.order("ask", method="ping", server="fine")["said"]["result"] == {}
        gone = run.order("ask", method="ping", server="sample")
        assert run.finish() == 0

    assert "input:path" not in text
    assert "gone" in gone
    assert "NOT STARTED: sample (the variable PYTHONPATH has a reference" in run.stderr
    assert "NEVER STARTED through the gate: 1 server: sample" in run.stderr
    assert machine.config.read_bytes() == original
    strict = machine.wrap_once("--strict")
    assert (strict.returncode, "nothing was started" in strict.stderr) == (2, True)


@pytest.mark.promise("repository-shim")
@pytest.mark.parametrize("way", ["console script", "module", "twice"])
def test_a_shim_that_a_repository_configured_is_left_out(machine: Machine, way: str) -> None:
    shim = {
        "console script": thoughtgate("shim", "--profile", "development", "--"),
        "module": [sys.executable, "-m", "thoughtgate", "shim", "--server-id", "x", "--"],
        "twice": [*thoughtgate("shim", "--"), *thoughtgate("shim", "--profile=development", "--")],
    }[way]
    command, *args = [*shim, *sample_server()]
    env = {"THOUGHTGATE_PROFILE": "development"}
    original = machine.write_config({"sample": {"command": command, "args": args, "env": env}})

    with machine.wrap("--strict") as run:
        run.open()
        assert kind_of(run.call("echo", {"text": "x"})) == "governance_denied"
        server = run.pid_of_server()
        assert b"shim" not in Path(f"/proc/{server}/cmdline").read_bytes().split(b"\0")
        assert "THOUGHTGATE_PROFILE" not in _environ(server)
        assert run.finish() == 0

    assert "sample: the shim in its entry is left out; this run's policy applies" in run.stderr
    assert machine.config.read_bytes() == original
    assert len(machine.events("run_start")) == 1


def test_a_program_that_calls_itself_our_shim_is_governed_like_a_server(machine: Machine) -> None:
    """It has no server behind it to unpack, and whatever it does, it does behind the gate."""
    fake = machine.project / "thoughtgate"
    fake.write_text(f"#!/bin/sh\nexec {' '.join(sample_server())}\n", "utf-8")
    fake.chmod(0o755)
    machine.write_config({"sample": {"command": str(fake), "args": ["shim", "--profile=x"]}})

    with machine.wrap() as run:
        run.open()
        assert kind_of(run.call("echo", {"text": "x"})) == "governance_denied"
        assert run.finish() == 0


@pytest.mark.promise("proven-governed")
def test_a_server_that_never_reported_is_named_and_fails_a_strict_run(machine: Machine) -> None:
    original = machine.write_config({"one": entry(), "two": entry()})

    done = machine.wrap_once()
    assert done.returncode == 0
    assert "configured 2 servers: one, two" in done.stderr
    assert "NEVER STARTED through the gate: 2 servers: one, two" in done.stderr
    assert "governed " not in done.stderr

    assert machine.wrap_once("--strict").returncode == 2
    assert machine.wrap_once("--strict", agent=["sh", "-c", "exit 7"]).returncode == 7
    assert machine.config.read_bytes() == original


@pytest.mark.promise("proven-governed")
def test_status_says_which_servers_are_proven(machine: Machine) -> None:
    far = {"url": "https://example.com/mcp", "headersHelper": "print-headers"}
    machine.write_config({"sample": entry(), "far": far})

    def states() -> dict[str, Any]:
        (gate,) = json.loads(machine.run("status", "--json").stdout)["gates"]
        return {one["id"]: one["status"] for one in gate["servers"]}

    with machine.wrap() as run:
        run.wait_until_ready()
        before = states()
        run.order("open")
        after = states()
        table = machine.run("status").stdout
        assert run.finish() == 0

    assert before == {"sample": "never started", "far": "not governed"}
    assert after == {"sample": "governed", "far": "not governed"}
    assert "governed" in table


def _library(folder: Path) -> Path:
    """Build a shared library, which does nothing, or skip where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        # Any library that a Python process does not load by itself serves as well.
        for name in ("libmemusage.so", "libpcprofile.so", "libSegFault.so"):
            for found in Path("/usr/lib").glob(f"*/{name}"):
                return found
        pytest.skip("no compiler and no spare library")
    target = folder / "libnothing.so"
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-o", str(target), os.devnull]
    subprocess.run(command, check=True, timeout=60)
    return target


@pytest.mark.promise("exact-names")
@pytest.mark.parametrize("name", ["${TOKEN}", "${TOKEN:-sample}", "{env:TOKEN}", "${input:x}"])
def test_a_name_that_the_agent_would_expand_is_refused(machine: Machine, name: str) -> None:
    original = machine.write_config({name: entry(), "sample": entry()})

    done = machine.wrap_once()

    assert done.returncode == 1
    assert f"mcpServers.{name}: a server's name must not refer to a variable" in done.stderr
    assert machine.config.read_bytes() == original


@pytest.mark.promise("entry-environment")
def test_a_prototype_of_variables_does_not_reach_the_gate(machine: Machine) -> None:
    machine.write_config({"bad": entry(env={"__proto__": {"LD_PRELOAD": "x"}}), "good": entry()})

    done = machine.wrap_once(agent=("cat", str(machine.config)))

    assert done.returncode == 0, done.stderr
    assert "LD_PRELOAD" not in done.stdout
    assert "the value of the variable __proto__ is not a text" in done.stderr
