"""The control socket."""

import asyncio
import contextlib
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import run_async

from thoughtgate.errors import PeerError, PeerGone, UsageError
from thoughtgate.gate.control_socket import ControlServer, ask_control


async def double(asked: dict[str, Any]) -> int:
    if "mode" in asked:
        return mode(Path(asked["mode"]))
    if "number" not in asked:
        raise UsageError("name a number")
    return int(asked["number"]) * 2


def mode(asked: Path) -> int:
    return stat.S_IMODE(asked.stat().st_mode)


def ask(path: Path, op: str, **arguments: Any) -> Any:
    async def main() -> Any:
        server = ControlServer(path, {"double": double})
        await server.open()
        try:
            return await asyncio.to_thread(ask_control, path, op, 10.0, **arguments)
        finally:
            await server.close()

    return run_async(main())


def test_an_operation_is_answered(tmp_path: Path) -> None:
    assert ask(tmp_path / "gates" / "1.sock", "double", number=4) == 8
    assert not (tmp_path / "gates" / "1.sock").exists()
    path = tmp_path / "gates" / "2.sock"
    assert ask(path, "double", mode=str(path)) == 0o600


def test_a_path_longer_than_a_socket_address_is_reached(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 80) / ("y" * 80)

    assert ask(folder / "1.sock", "double", number=2) == 4


def test_a_refusal_says_why(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="name a number"):
        ask(tmp_path / "1.sock", "double")
    with pytest.raises(PeerError, match="unknown operation; the known ones are: double"):
        ask(tmp_path / "1.sock", "explode")


def test_a_left_over_socket_is_replaced_and_an_absent_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "1.sock"
    path.touch()

    assert ask(path, "double", number=1) == 2
    with pytest.raises(PeerGone):
        ask_control(path, "double", number=1)


def test_what_is_no_question_is_answered_and_survived(tmp_path: Path) -> None:
    path = tmp_path / "1.sock"

    async def main() -> bytes:
        server = ControlServer(path, {"double": double})
        await server.open()
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"nonsense\n[]\n" + b'{"op": ["x"]}\n')
        answers = b"".join([await reader.readline() for _ in range(3)])
        writer.write(b"x" * 2_000_000)
        with contextlib.suppress(OSError):  # The server hangs up on a line without end.
            await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        assert await asyncio.to_thread(ask_control, path, "double", number=3) == 6
        await server.close()
        return answers

    assert run_async(main()).count(b'"ok": false') == 3
