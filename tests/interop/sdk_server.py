"""A server made with the official SDK, run as a program on stdio.

``hidden`` leaves a file behind when it runs, which is how the smuggling test sees it.
"""

import os
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("sdk-sample", version="1.0", instructions="Only for tests.", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("this tool always fails")


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Tell progress, then be done."""
    for step in range(count):
        await ctx.report_progress(step + 1, count)
    return f"{count} steps"


@server.tool()
def hidden() -> str:
    """Leave a trace."""
    Path(os.environ["HIDDEN_TRACE"]).write_text("ran", "utf-8")
    return "ran"


@server.resource("note://welcome")
def welcome() -> str:
    """A note."""
    return "Welcome\u2028to the note"


@server.prompt()
def summarise(text: str) -> str:
    """Ask for a summary."""
    return f"Summarise: {text}"


if __name__ == "__main__":
    server.run("stdio")
