"""The official SDK's client and server, with the shim between them and without it."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.support.commands import sample_server, shim
from tests.support.first_of import first_of
from tests.support.shim_peer import ALLOW_ALL
from tests.support.waiting import run_async

SDK = [sys.executable, str(Path(__file__).with_name("sdk_server.py"))]
MODES = ["legacy", "auto", "2026-07-28"]


def _behind_shim(tmp_path: Path, server: list[str]) -> list[str]:
    config = tmp_path / "thoughtgate.yaml"
    config.write_text(ALLOW_ALL)
    return shim(server, "-c", str(config))


def _parameters(command: list[str], tmp_path: Path) -> StdioServerParameters:
    env = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state"), "HIDDEN_TRACE": str(tmp_path / "h")}
    return StdioServerParameters(command=command[0], args=command[1:], env=env)


async def _everything(parameters: StdioServerParameters, mode: Any) -> dict[str, Any]:
    """Use every feature that a client has, and return all that the server said."""
    told: list[tuple[float, float | None]] = []

    async def note_progress(progress: float, total: float | None, message: str | None) -> None:
        del message
        told.append((progress, total))

    with anyio.fail_after(30):
        async with Client(parameters, mode=mode, read_timeout_seconds=20) as client:
            said: dict[str, Any] = {
                "version": client.protocol_version,
                "info": client.server_info,
                "instructions": client.instructions,
                "capabilities": client.server_capabilities,
                "tools": await client.list_tools(),
                "resources": await client.list_resources(),
                "templates": await client.list_resource_templates(),
                "prompts": await client.list_prompts(),
                "add": await client.call_tool("add", {"a": 2, "b": 3}),
                "fail": await client.call_tool("fail", {}),
                "unknown": await _failure(client),
                "steps": await client.call_tool(
                    "steps", {"count": 3}, progress_callback=note_progress
                ),
                "read": await client.read_resource("note://welcome"),
                "prompt": await client.get_prompt("summarise", {"text": "x"}),
            }
    plain = {key: value for key, value in said.items() if not hasattr(value, "model_dump")}
    dumped = {key: value.model_dump(mode="json") for key, value in said.items() if key not in plain}
    return {**plain, **dumped, "progress": told}


async def _failure(client: Client) -> str:
    """Return what a tool that does not exist gives: an error or a failed result."""
    try:
        return repr(await client.call_tool("no-such-tool", {}))
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same with the shim
        return repr(error)


@pytest.mark.parametrize("mode", first_of(MODES[::-1]))
def test_the_official_client_and_server_see_no_difference(tmp_path: Path, mode: str) -> None:
    direct = run_async(_everything(_parameters(SDK, tmp_path), mode))
    shimmed = run_async(_everything(_parameters(_behind_shim(tmp_path, SDK), tmp_path), mode))

    assert shimmed == direct
    assert direct["version"] == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert direct["progress"] == [(1.0, 3.0), (2.0, 3.0), (3.0, 3.0)]
    assert direct["add"]["structured_content"] == {"result": 5}


@pytest.mark.parametrize("mode", first_of(MODES))
def test_the_official_client_sees_only_what_the_policy_shows(tmp_path: Path, mode: str) -> None:
    config = tmp_path / "thoughtgate.yaml"
    config.write_text("schema: 1\ndefault: forward\nservers:\n  sample: {expose: {allow: [add]}}\n")
    command = shim(SDK, "-c", str(config))

    async def look() -> tuple[list[str], str]:
        with anyio.fail_after(30):
            async with Client(_parameters(command, tmp_path), mode=mode) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                try:
                    await client.call_tool("hidden", {})
                except Exception as error:  # noqa: BLE001 - its text is what is looked at
                    return names, str(error)
                return names, "no error"

    names, said = run_async(look())

    assert names == ["add"]
    assert "there is nothing by that name here" in said
    assert not (tmp_path / "h").exists()


def test_the_official_client_answers_the_servers_requests_through_the_shim(
    tmp_path: Path,
) -> None:
    """Sampling, roots and elicitation of the legacy era go from the server to the client."""
    from mcp import types

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        del context, params
        return types.ElicitResult(action="accept", content={"answer": "42"})

    async def roots(context: Any) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(roots=[])

    async def ask() -> list[str]:
        parameters = _parameters(_behind_shim(tmp_path, sample_server()), tmp_path)
        with anyio.fail_after(30):
            async with Client(
                parameters, mode="legacy", elicitation_callback=elicit, list_roots_callback=roots
            ) as client:
                found = []
                for tool, arguments in (("elicit", {"question": "?"}), ("roots", {})):
                    outcome = await client.call_tool(tool, arguments)
                    found.append(str(outcome.content[0].text))  # type: ignore[union-attr]
                return found

    elicited, listed = run_async(ask())

    assert '"42"' in elicited
    assert '"roots": []' in listed
