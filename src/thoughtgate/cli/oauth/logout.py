"""``thoughtgate logout``: revoke and delete the tokens of a remote server."""

import asyncio

from thoughtgate.cli.oauth.access import PrincipalOption, ServerArgument, open_access
from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples
from thoughtgate.cli.output import write_report
from thoughtgate.errors import visible
from thoughtgate.gate.run_identity import LOCAL

app = command_app()


@app.command(epilog=examples("thoughtgate logout search", "thoughtgate logout search --json"))
def logout(
    server: ServerArgument,
    *,
    config: ConfigOption = None,
    principal: PrincipalOption = LOCAL,
    json_: JsonOption = False,
) -> None:
    """Sign out from a remote server: revoke its tokens and delete them.

    Running gates stop using the tokens with their next call.
    """
    access, chosen, _ = open_access(config, server)

    async def run() -> bool:
        try:
            return await access.logout(chosen, principal)
        finally:
            await access.close()

    was_signed_in = asyncio.run(run())
    report = {"server": chosen.id, "principal": principal, "signed_out": was_signed_in}
    name = visible(chosen.id)
    line = f"Signed out from {name}" if was_signed_in else f"You were not signed in to {name}"
    write_report(report, [line], as_json=json_)
