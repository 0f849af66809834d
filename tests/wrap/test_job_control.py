"""Ctrl-Z and ``fg`` in a real terminal: nothing is lost, whoever of the group is stopped."""

import os
import shlex
import signal
import sys
from collections.abc import Iterator

import pytest
from tests.support.commands import thoughtgate
from tests.support.terminal_shell import PROMPT, PipedOrders, TerminalShell
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, text_of

from thoughtgate.gate.run_file import is_stopped

OWN_GROUP = "import os, sys; os.setpgid(0, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Runs a command in a process group of its own, as Codex does with its servers."""


@pytest.fixture
def orders(machine: Machine) -> Iterator[PipedOrders]:
    made = PipedOrders(machine.top)
    yield made
    made.close()


def _start(machine: Machine, orders: PipedOrders, shell: TerminalShell) -> None:
    agent = ["sh", "-c", orders.command(machine.agent())]
    told = ["--agent-type", "custom", "--config-path", str(machine.config), "--", *agent]
    shell.types(shlex.join(thoughtgate("wrap", *told)) + "\n")


def test_ctrl_z_and_fg_leave_the_servers_alive(machine: Machine, orders: PipedOrders) -> None:
    original = machine.write_sample()
    with TerminalShell(machine.env, machine.project) as shell:
        _start(machine, orders, shell)
        agent = orders.receive()["ready"]
        (shim,) = [one["pid"] for one in orders.order("open")["said"].values()]
        shell.types("\x1a")
        shell.sees("Stopped")
        shell.sees(PROMPT)
        assert is_stopped(agent)
        assert is_stopped(shim)
        shell.types("fg\n")
        assert text_of(orders.call("echo", {"text": "back"})) == "back"
        os.kill(agent, signal.SIGTERM)
        shell.sees("record    ")
        shell.sees(PROMPT)
    assert machine.config.read_bytes() == original


def test_an_agent_that_stops_itself_gives_the_terminal_back(
    machine: Machine, orders: PipedOrders
) -> None:
    original = machine.write_sample()
    with TerminalShell(machine.env, machine.project) as shell:
        _start(machine, orders, shell)
        agent = orders.receive()["ready"]
        orders.order("open")
        os.kill(agent, signal.SIGSTOP)
        shell.sees("Stopped")
        shell.sees(PROMPT)
        shell.types("fg\n")
        assert text_of(orders.call("echo", {"text": "back"})) == "back"
        os.kill(agent, signal.SIGTERM)
        shell.sees("record    ")
        shell.sees(PROMPT)
    assert machine.config.read_bytes() == original


@pytest.mark.long
def test_a_server_in_a_group_of_its_own_outlives_a_stop_of_the_service(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap(agent=[sys.executable, "-c", OWN_GROUP, *machine.agent()]) as run:
        run.open()
        (shim,) = run.shims.values()
        os.kill(run.peer.pid, signal.SIGSTOP)
        # Longer than a heartbeat and its timeout: each refused call takes two seconds.
        for _ in range(7):
            assert run.call("echo", {"text": "not now"})["error"]["data"]["kind"] == (
                "service_unavailable"
            )
        os.kill(shim, 0)
        os.kill(run.peer.pid, signal.SIGCONT)
        wait_for(
            lambda: "result" in run.call("echo", {"text": "back"}), what="the service going on"
        )
        assert run.finish() == 0
        assert "governance service is gone" not in run.stderr
    assert machine.config.read_bytes() == original
    assert machine.unfinished_calls() == set()
