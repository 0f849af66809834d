"""The entry point: runs the shim directly, and every other command through typer.

An agent starts one shim per server, so a shim must start within a tenth of a second and use
few megabytes. Its arguments are therefore parsed by hand, and only what it needs is imported.
"""

import sys

SHIM_HELP = """\
Usage: thoughtgate shim [OPTIONS] -- COMMAND [ARGS]...

  Run one stdio MCP server behind the gate. Use this in place of the server's own
  command in an agent's config; 'thoughtgate wrap' does that for every server.

Options:
  --server-id ID        Name of this server in rules and in the record (also
                        --server-name). Default: the name of the command.
  -c, --config FILE     Config file. Default: the one in the user's config
                        directory, else the built-in starter policy. A file in
                        the working directory can only tighten it, unless you
                        have trusted it (thoughtgate trust).
  --state-dir DIR       Directory of the record and the approvals, an absolute
                        path. Default: the one in your home directory.
  --profile NAME        production or development; overrides the config.
  --audit stderr|FILE   Where to write the record. Default: a file in the state
                        directory.
  --run KEY             Use the governance service of this run (set by wrap).
  --entry KEY           Give the server the variables that were stored for this
                        entry (set by wrap and install).
  --skip N              Leave out the first N words of COMMAND: another shim in
                        front of the server (set by wrap and install).
  --governance-endpoint URL
                        Use the governance service at this URL; its token is
                        read from THOUGHTGATE_GOVERNANCE_TOKEN.
  -h, --help            Show this text.

Examples:
  thoughtgate shim -- npx -y @modelcontextprotocol/server-filesystem /tmp
  thoughtgate shim --server-id git -c thoughtgate.yaml -- mcp-server-git
"""


def main() -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["shim"]:
        from thoughtgate.shim.command import run_shim

        return run_shim(arguments[1:], SHIM_HELP)
    from thoughtgate.cli.app import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
