"""A client made with the official Python SDK: lists the tools, calls one and prints both as JSON.

Arguments: the tool, and a URL or a command line.
"""

import json
import os
import sys
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from tests.support.waiting import run_async


async def main(tool: str, place: str, *words: str) -> None:
    """Print what the server says."""
    server: Any = place
    if not place.startswith("http"):
        server = StdioServerParameters(command=place, args=list(words), env=dict(os.environ))
    said: dict[str, Any] = {}
    async with Client(server) as client:
        said["tools"] = [one.name for one in (await client.list_tools()).tools]
        try:
            result: Any = await client.call_tool(tool, {"path": "/a/../b", "amount": 2})
            said["text"] = result.content[0].text
        except MCPError as error:
            said["error"] = str(error)
    print(json.dumps(said))


run_async(main(*sys.argv[1:]))
