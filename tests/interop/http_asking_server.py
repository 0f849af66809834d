"""A server over HTTP, on the official SDK, whose tools send the client requests."""

import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("asking", log_level="WARNING")


class Name(BaseModel):
    """What the user is asked for."""

    name: str


@server.tool()
def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool()
async def elicit(question: str, ctx: Context) -> str:
    """Ask the user, and return the answer."""
    said = await ctx.elicit(question, Name)
    return f"{said.action} {said.data.name if said.action == 'accept' and said.data else ''}"


if __name__ == "__main__":
    uvicorn.run(
        server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error"
    )
