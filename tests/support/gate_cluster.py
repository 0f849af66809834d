"""Several gates with one store: real processes, each with a state directory of its own."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.balancer import HOST, balancing
from tests.support.proxy_process import ProxyProcess, proxy_command, serve_command

TOKEN = "cluster-token-0123456789"


def write_keys(path: Path, *keys: str) -> Path:
    """Write a key file as an operator would."""
    path.touch(0o600)
    path.write_text("".join(f"{key}\n" for key in keys or ("0f" * 32,)))
    return path


class Cluster:
    """Gates that share a store and keys, and the balancer before them."""

    def __init__(self, gates: list[ProxyProcess], port: int) -> None:
        self.gates = gates
        self.port = port
        """The balancer's port."""

    @property
    def url(self) -> str:
        """Where agents connect."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def served(self, kind: str = "tool_call_end") -> list[int]:
        """Return how many events of a kind each gate has put on record."""
        return [len(gate.records(kind)) for gate in self.gates]


@contextlib.contextmanager
def running_gates(
    directory: Path,
    config: Mapping[str, Any],
    store: str,
    *,
    command: Callable[..., list[str]] = proxy_command,
    count: int = 3,
    checked: bool = False,
    keys: Sequence[str] = (),
) -> Iterator[Cluster]:
    """Run gates with one config, ready behind a balancer."""
    directory.mkdir(parents=True, exist_ok=True)
    file = write_keys(directory / "session-keys", *keys)
    path = directory / "thoughtgate.yaml"
    listen = {"transport": "http", "hosts": [HOST], **config.get("listen", {})}
    base = {"schema": 1, "default": "forward", "store": store, "keys": {"file": file.name}}
    path.write_text(json.dumps({**base, **config, "listen": listen}))
    flag = "--http" if command is serve_command else "--listen"
    environ = {"AGENT_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(_import_path())}
    with contextlib.ExitStack() as stack:
        gates = []
        for number in range(count):
            home = directory / f"gate{number}"
            home.mkdir()
            arguments = ["-c", str(path), flag, "127.0.0.1:0"]
            gate = ProxyProcess(home, arguments, environ=environ, command=command)
            gates.append(stack.enter_context(gate))
        ports = [gate.port for gate in gates]
        port = stack.enter_context(balancing(directory, ports, checked=checked))
        yield Cluster(gates, port)


def _import_path() -> list[str]:
    return [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
