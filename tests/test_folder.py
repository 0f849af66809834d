"""The folder that needs no Python: it is built, and runs as an installation does."""

import importlib.util
import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import ROOT, sample_server
from tests.support.http_agent import HttpAgent
from tests.support.proxy_process import ProxyProcess
from tests.support.self_contained import INITIALIZE, build_folder
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, WrappedAgent, kind_of, text_of

DENY_ECHO = "schema: 1\ndefault: forward\nrules:\n  - {tool: echo, action: deny}\n"


def _load_program() -> Any:
    path = ROOT / "deploy" / "folder" / "main.py"
    spec = importlib.util.spec_from_file_location("folder_main", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_folder(tmp_path_factory))


def _run(
    program: str, *args: str, timeout: float = 60, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *args], capture_output=True, text=True, timeout=timeout, check=False, **options
    )


def _bare(tmp_path: Path, **more: str) -> dict[str, str]:
    """Return an environment in which no Python can be found."""
    return {"PATH": str(tmp_path / "nothing"), "HOME": str(tmp_path), **more}


def _environ(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"LD_LIBRARY_PATH": "/f/_internal"}, {}),
        (
            {"LD_LIBRARY_PATH": "/f/_internal:/own:/b", "LD_LIBRARY_PATH_ORIG": "/own:/b"},
            {"LD_LIBRARY_PATH": "/own:/b"},
        ),
        ({"LD_LIBRARY_PATH": "/own"}, {"LD_LIBRARY_PATH": "/own"}),
        (
            {"LD_LIBRARY_PATH": "/f/_internal", "LD_LIBRARY_PATH_ORIG": "/of/another"},
            {"LD_LIBRARY_PATH_ORIG": "/of/another"},
        ),
        ({"_PYI_ARCHIVE_FILE": "/f/thoughtgate", "_PYI_PARENT_PROCESS_LEVEL": "1"}, {}),
        ({"PATH": "/bin", "HOME": "/h"}, {"PATH": "/bin", "HOME": "/h"}),
    ],
)
def test_what_the_loader_changed_in_the_environment_is_undone(
    before: dict[str, str], after: dict[str, str]
) -> None:
    _load_program().restore_environment(before, "/f/_internal", b"PATH=/bin\0")

    assert before == after


def test_the_virtual_environment_that_the_loader_removed_is_named_again() -> None:
    environ: dict[str, str] = {}

    _load_program().restore_environment(environ, "/f", b"A=1\0VIRTUAL_ENV=/v\0B=2\0")

    assert environ == {"VIRTUAL_ENV": "/v"}


@pytest.mark.long
@pytest.mark.requirement("FR30")
def test_it_needs_no_python(program: str, tmp_path: Path) -> None:
    done = _run(program, "--version", env=_bare(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("thoughtgate ")

    shown = _run(program, "demo", env=_bare(tmp_path))
    assert shown.returncode == 0, shown.stderr
    assert "sound: " in shown.stdout

    # A moved folder, called through a link, still finds itself.
    moved = shutil.copytree(Path(program).parent, tmp_path / "moved", symlinks=True)
    link = tmp_path / "link"
    link.symlink_to(moved / "thoughtgate")
    told = _run(str(link), "doctor", "--json", env=_bare(tmp_path))
    findings = json.loads(told.stdout)
    command = [one["message"] for one in findings if one["check"] == "command"]
    assert command == [str(moved / "thoughtgate")]


@pytest.mark.long
def test_it_contains_the_data_the_native_modules_the_extras_and_the_channels(
    program: str, tmp_path: Path
) -> None:
    inside = Path(program).parent / "_internal"
    for file in ("record/contract.toml", "web/templates", "web/static"):
        assert (inside / "thoughtgate" / file).exists()
    for module in ("cedarpy", "orjson", "uvloop", "httptools"):
        assert list((inside / module).rglob("*.so")), module
    for package in ("textual", "slack_sdk", "pyjwt", "opentelemetry_sdk", "folder_channel"):
        assert list(inside.glob(f"{package}-*.dist-info/METADATA")), package
    # Nothing of the machine that built it, and nothing that only the build needs.
    assert not list(inside.rglob("direct_url.json"))
    for package in ("PyInstaller", "pytest", "pip", "setuptools"):
        assert not (inside / package).exists()

    config = tmp_path / "thoughtgate.yaml"
    text = (
        "schema: 1\ndefault: forward\nrules:\n  - {tool: echo, action: approve}\n"
        "approval:\n  default: {channel: CHANNEL, options: {folder: /tmp}}\n"
    )
    config.write_text(text.replace("CHANNEL", "folder"), "utf-8")
    done = _run(program, "validate-config", "-c", str(config), env=_bare(tmp_path))
    assert done.returncode == 0, done.stderr + done.stdout
    config.write_text(text.replace("CHANNEL", "elsewhere"), "utf-8")
    done = _run(program, "validate-config", "-c", str(config), env=_bare(tmp_path))
    assert done.returncode == 1
    assert "folder" in done.stderr + done.stdout


@pytest.mark.long
@pytest.mark.promise("entry-environment")
def test_neither_a_variable_nor_the_working_directory_adds_code(
    program: str, tmp_path: Path
) -> None:
    for name in ("sitecustomize", "usercustomize", "thoughtgate", "json", "encodings"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n", "utf-8")
    place = str(tmp_path)
    env = _bare(
        tmp_path,
        PYTHONPATH=place,
        PYTHONHOME=place,
        PYTHONSTARTUP=f"{place}/json.py",
        PYTHONINSPECT="1",
        PYTHONPLATLIBDIR=place,
        _PYI_APPLICATION_HOME_DIR=place,
        _PYI_ARCHIVE_FILE=program,
        _PYI_PARENT_PROCESS_LEVEL="1",
    )

    done = _run(program, "shim", "--help", cwd=tmp_path, env=env, stdin=subprocess.DEVNULL)

    assert done.returncode == 0, done.stderr
    assert "Usage: thoughtgate shim" in done.stderr


@pytest.mark.long
def test_a_shim_gives_its_server_the_environment_that_it_was_given(
    program: str, tmp_path: Path
) -> None:
    env = {"LD_LIBRARY_PATH": "/own", "VIRTUAL_ENV": "/v", "PYTHONPATH": str(ROOT)}
    log = tmp_path / "environment.json"
    show = f"import json, os, sys; json.dump(dict(os.environ), open({str(log)!r}, 'w')); sys.stdin.read()"
    command = [
        program,
        "shim",
        "--state-dir",
        str(tmp_path / "s"),
        "--",
        sys.executable,
        "-c",
        show,
    ]
    with StdioPeer(command, env=env) as peer:
        peer.finish()

    got = json.loads(log.read_text("utf-8"))
    assert {name: got.get(name) for name in env} == env
    assert not [name for name in got if name.startswith("_PYI") or name.endswith("_ORIG")]


@pytest.mark.long
def test_a_shim_and_a_proxy_answer(program: str, tmp_path: Path) -> None:
    shim = [program, "shim", "--state-dir", str(tmp_path / "s"), "--", *sample_server()]
    with StdioPeer(shim) as peer:
        peer.send(INITIALIZE)
        assert "serverInfo" in peer.receive()["result"]
        assert peer.finish() == 0

    config = tmp_path / "thoughtgate.yaml"
    command, *args = sample_server()
    server = {"command": command, "args": args}
    settings = {"schema": 1, "default": "forward", "servers": {"sample": server}}
    config.write_text(json.dumps(settings), "utf-8")
    flags = ["-c", str(config), "--listen", "127.0.0.1:0", "--workers", "2"]
    with ProxyProcess(tmp_path, flags, program=program) as proxy:
        agent = HttpAgent(proxy.port)
        agent.greet()
        asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        assert agent.ask(asked)["result"]["tools"]
        wait_for(lambda: proxy.stderr.count("listening on") == 2, what="the second worker")
        assert proxy.stop() == 0


@pytest.mark.long
@pytest.mark.promise("entry-environment")
def test_what_an_entry_sets_does_not_reach_its_shims_under_wrap(
    program: str, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, DENY_ECHO)
    evil = machine.project / "evil"
    evil.mkdir()
    names = ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_AUDIT", "_PYI_ARCHIVE_FILE", "OPENSSL_MODULES")
    original = machine.write_sample(env=dict.fromkeys(names, str(evil)))
    flags = ["--strict", "--agent-type", "custom", "--config-path", str(machine.config)]

    with WrappedAgent(machine, [program, "wrap", *flags, "--", *machine.agent()]) as run:
        run.open()
        assert kind_of(run.call("echo", {"text": "x"})) == "governance_denied"
        assert text_of(run.call("read_note", {"name": "welcome"}))
        shim, server = _environ(run.shims["sample"]), _environ(run.pid_of_server())
        running = Path(f"/proc/{run.shims['sample']}/exe").readlink()
        assert run.finish() == 0

    assert running == Path(program).resolve()
    assert not [name for name, value in shim.items() if str(evil) in value]
    assert {name: server.get(name) for name in names} == dict.fromkeys(names, str(evil))
    assert machine.config.read_bytes() == original


@pytest.mark.long
def test_the_guardian_restores_the_agents_config_after_a_kill(program: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    original = machine.write_sample()
    flags = ["--agent-type", "custom", "--config-path", str(machine.config)]

    with WrappedAgent(machine, [program, "wrap", *flags, "--", *machine.agent()]) as run:
        run.open()
        assert machine.config.read_bytes() != original
        run.signal(signal.SIGKILL)
        wait_for(lambda: machine.config.read_bytes() == original, what="the restored config")
        run.assert_nothing_left()


@pytest.mark.long
def test_the_console_has_its_pages(program: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write_sample()
    flags = ["--agent-type", "custom", "--config-path", str(machine.config)]

    with WrappedAgent(machine, [program, "wrap", *flags, "--", *machine.agent()]) as run:
        run.open()
        link = run.stderr.partition("console   ")[2].split()[0]
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(link, timeout=30) as page:
            style = re.search(r'href="([^"]+\.css[^"]*)"', page.read().decode())
        assert style is not None
        with opener.open(urllib.parse.urljoin(link, style[1]), timeout=30) as file:
            assert file.read()
        assert run.finish() == 0
