"""The sample server's tools over HTTP, on the official SDK: a peer that is not ours."""

import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("http-sample", log_level="WARNING")


@server.tool()
def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool()
def add(a: float, b: float) -> str:
    """Add two numbers."""
    return str(round(a + b))


@server.tool()
def delete_note(name: str) -> str:
    """Delete a note."""
    return f"deleted {name}"


if __name__ == "__main__":
    uvicorn.run(
        server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error"
    )
