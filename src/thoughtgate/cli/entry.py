"""Where the command starts: the shim goes its own short way, everything else to typer.

An agent starts one shim per server, so a shim must be up within a tenth of a second and
in few megabytes: its arguments are read by hand and nothing is imported that it does
not need.
"""

import sys

SHIM_HELP = """\
Usage: thoughtgate shim [OPTIONS] -- COMMAND [ARGS]...

  Run one stdio MCP server behind the gate. Use it in place of the server's own
  command in an agent's config; `thoughtgate wrap` does that for every server.

Options:
  --server-id ID        What rules and the record call this server (also --server-name).
                        Default: the name of the command.
  -c, --config FILE     Judge by this config. Default: the usual places, else the
                        built-in starter policy.
  --profile NAME        production or development; overrides the config.
  --audit stderr|FILE   Where the record goes. Default: the state directory.
  --run KEY             Ask the governance service of this run (set by wrap).
  --governance-endpoint URL
                        Ask the governance service at this address; its token is
                        read from THOUGHTGATE_GOVERNANCE_TOKEN.
  -h, --help            Show this text.

Examples:
  thoughtgate shim -- npx -y @modelcontextprotocol/server-filesystem /tmp
  thoughtgate shim --server-id git -c thoughtgate.yaml -- mcp-server-git
"""


def main() -> int:
    """Run the command; the console script exits with what this returns."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["shim"]:
        from thoughtgate.shim.command import run_shim

        return run_shim(arguments[1:], SHIM_HELP)
    from thoughtgate.cli.app import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
