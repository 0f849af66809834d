"""A server made with the official Python SDK that reports what it reads, on stdio or a port."""

import posixpath
import sys
from urllib.parse import unquote, urlsplit

import uvicorn
from mcp.server import MCPServer

server = MCPServer("python-reader", version="1.0", log_level="ERROR")


def _seen(name: str, path: str, paths: list[str], amount: float) -> str:
    walked = " ".join(f"path={posixpath.normpath(one)}" for one in (path, *paths) if one)
    return f"reached tool {name} {walked} amount={amount}"


@server.tool()
def use(path: str = "", paths: list[str] = [], amount: float = 0) -> str:  # noqa: B006  never changed
    """Report the arguments."""
    return _seen("use", path, paths, amount)


@server.tool()
def secret_tool() -> str:
    """Report the call."""
    return _seen("secret_tool", "", [], 0)


@server.resource("secret://k")
def secret() -> str:
    """Report the call."""
    return "reached resource secret://k path=."


@server.resource("note://today")
def note() -> str:
    """Report the call."""
    return "reached resource note://today path=."


@server.resource("file:///{+path}")
def read(path: str) -> str:
    """Report the file that this URI leads to."""
    walked = posixpath.normpath(unquote(urlsplit(f"file:///{path}").path))
    return f"reached resource file:// path={walked}"


if len(sys.argv) > 1:
    app = server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
else:
    server.run()
