"""``thoughtgate login``: sign in to a remote server, so that the gate can use it for your agents."""

import asyncio
import contextlib
import sys
import webbrowser
from collections.abc import Awaitable
from typing import Annotated, Final, TypeVar

from typer import Option

from thoughtgate.cli.oauth.access import (
    PrincipalOption,
    ServerArgument,
    login_lines,
    open_access,
)
from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples
from thoughtgate.cli.output import write_report
from thoughtgate.cli.progress import Progress
from thoughtgate.config.durations import parse_duration
from thoughtgate.config.server_auth import CLIENT_CREDENTIALS
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import LoginError, UsageError, visible
from thoughtgate.gate.clock import monotonic
from thoughtgate.gate.run_identity import LOCAL
from thoughtgate.status.server_logins import login_object
from thoughtgate.transports.origin import parse_origin
from thoughtgate.upstream.oauth.fetch import shown
from thoughtgate.upstream.oauth.login import LoginFlow
from thoughtgate.upstream.oauth.loopback_redirect import loopback_redirect
from thoughtgate.upstream.oauth.tokens import SignedIn

TICK_S: Final = 1.0
"""How often the progress line is updated."""

app = command_app()

Answer = TypeVar("Answer")


@app.command(
    epilog=examples(
        "thoughtgate login search",
        "thoughtgate login search --no-browser",
        "thoughtgate login search --device",
        "thoughtgate login https://mcp.example.com/mcp",
    )
)
def login(
    server: ServerArgument,
    *,
    config: ConfigOption = None,
    no_browser: Annotated[
        bool, Option("--no-browser", help="Print the link instead of opening a browser.")
    ] = False,
    device: Annotated[
        bool,
        Option("--device", help="Sign in on another device, such as a phone, by entering a code."),
    ] = False,
    principal: PrincipalOption = LOCAL,
    timeout: Annotated[
        str, Option(metavar="TIME", help="How long to wait for the sign-in, such as 5m.")
    ] = "5m",
    json_: JsonOption = False,
) -> None:
    """Sign in to a remote server that needs it.

    The tokens are stored encrypted, and running gates use them at once. The browser gets the link
    on its command line, which other users of the machine may see: use --no-browser on a shared
    machine. The link is of no use without the secret that only this command has.
    """
    try:
        patience_s = parse_duration(timeout)
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from None
    access, chosen, _ = open_access(config, server)
    # A repository can contain a server with any name, so the name does not tell who it is.
    _tell(f"Signing in to {visible(chosen.id)} at {shown(parse_origin(chosen.url))}")

    async def run() -> SignedIn:
        try:
            async with access.login(chosen, principal) as flow:
                return await _sign_in(
                    flow, chosen, patience_s, device=device, browser=not no_browser
                )
        finally:
            await access.close()

    found = asyncio.run(run())
    write_report(login_object(found), map(visible, login_lines(found)), as_json=json_)


async def _sign_in(
    flow: LoginFlow, server: ServerSettings, patience_s: float, *, device: bool, browser: bool
) -> SignedIn:
    if server.auth is not None and server.auth.grant == CLIENT_CREDENTIALS:
        return await flow.use_client_credentials()
    if device:
        prompt = await flow.begin_device()
        _tell(
            f"Open {visible(prompt.verification_uri)} on any device and enter the code "
            f"{visible(prompt.user_code)}"
        )
        return await _wait(flow.finish_device(), min(patience_s, prompt.expires_in_s))
    async with loopback_redirect(flow.finish) as redirect:
        link = await flow.begin(redirect.uri)
        redirect.state = flow.state
        if not browser or not await _open_browser(link):
            _tell(f"Open this link in a browser on this machine to sign in:\n  {visible(link)}")
        return await _wait(redirect.wait(), patience_s)


async def _open_browser(link: str) -> bool:
    """Open the browser; return whether there is one."""
    # The server chose this address, so the person should see where the browser goes.
    place = shown(parse_origin(link))
    _tell(f"Opening {place} in the browser; with --no-browser, the link is printed instead.")
    with contextlib.suppress(webbrowser.Error):
        return await asyncio.to_thread(webbrowser.open, link)
    return False


async def _wait(result: Awaitable[Answer], patience_s: float) -> Answer:
    """Return a result; show how much time is left.

    Raises:
        LoginError: the time is over.
    """
    task = asyncio.ensure_future(result)
    ends_at = monotonic() + patience_s
    with Progress() as progress:
        while (left := ends_at - monotonic()) > 0:
            done, _ = await asyncio.wait({task}, timeout=min(TICK_S, left))
            if done:
                return task.result()
            if progress.is_due():
                progress.show(
                    f"waiting for the sign-in, {int(left // 60)}:{int(left % 60):02d} left"
                )
    task.cancel()
    await asyncio.wait({task})
    raise LoginError("nobody signed in within the time; run the command again, or use --timeout")


def _tell(text: str) -> None:
    """Tell the user what to do, on stderr, because stdout is for the result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
