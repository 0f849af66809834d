"""The starter policy, as the text that ``thoughtgate init`` writes.

The built-in default is the same text, loaded like any other config, so that the two can never
differ.
"""

from typing import Final

STARTER_SERVERS: Final = """\
  # Secrets, injected instructions and the like are recorded and reported; nothing waits for it.
  "*": {results: {record: [hard]}, arguments: {record: [hard]}}
"""
"""What applies to the contents of every server."""

STARTER_TEXT: Final = f"""\
# ThoughtGate starter policy.
#
# The gate forwards and records every call, but asks a person before running a tool that
# destroys, executes or spends. The same policy applies if there is no config file.
# Check this file:      thoughtgate validate-config -c thoughtgate.yaml
# See what it decides:  thoughtgate policy explain --server S --tool T --args '{{}}'

schema: 1

# production enforces this policy; development forwards every call and only reports.
profile: production

# What happens to a call that no rule matches: forward, deny, approve or policy.
default: forward

# Servers need an entry of their own only to hide tools, or to be started by `proxy` and `serve`.
servers:
{STARTER_SERVERS}  # filesystem:
  #   command: npx
  #   args: ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]
  #   expose: {{block: [write_file]}}

# The first rule that matches decides.
rules:
  # Tools that their server marks as destructive. The server controls these annotations, so
  # they can make a verdict stricter but never more permissive.
  - id: starter-annotations
    kind: tool
    annotations: {{destructiveHint: true, readOnlyHint: {{ne: true}}}}
    action: approve
    reason: the server says that this tool destroys

  - id: starter-destroys
    kind: tool
    words: [delete, deletes, del, remove, removes, rm, rmdir, drop, destroy, erase, purge, truncate,
            wipe, unlink, uninstall, revoke, reset, format, kill, terminate, overwrite, overwrites]
    action: approve
    reason: the name says that this tool destroys

  - id: starter-executes
    kind: tool
    words: [exec, execute, executes, run, runs, shell, bash, sh, cmd, powershell, terminal, command,
            commands, eval, evaluate, script, spawn, sudo, deploy]
    action: approve
    reason: the name says that this tool executes

  - id: starter-spends
    kind: tool
    words: [pay, pays, payment, payments, transfer, transfers, purchase, purchases, buy, spend,
            charge, refund, withdraw, checkout, order, wire, payout, donate, trade]
    action: approve
    reason: the name says that this tool spends

# Where approval is requested: in the console, for five minutes; then the call is denied.
# With `ask: once_per_tool`, an approval covers that tool until the agent's session ends.
approval:
  default: {{channel: console, timeout: 5m, on_timeout: deny, ask: each_call}}
"""
