"""The starter policy, as the text that ``thoughtgate init`` writes.

The built-in default is the same text, loaded like any other config, so that the default and the
written file never differ.
"""

from typing import Final

STARTER_TEXT: Final = """\
# ThoughtGate starter policy.
#
# Every call is forwarded and recorded, except that a person is asked before a tool that
# deletes, overwrites, executes or spends. Without a config file this same policy applies.
# Check this file with:  thoughtgate validate-config -c thoughtgate.yaml
# See what it does with: thoughtgate policy explain --server S --tool T --args '{}'

schema: 1

# production enforces; development forwards everything and only says what it would do.
profile: production

# What happens to a call that no rule matches: forward, deny, approve or policy.
default: forward

# Servers need an entry only to hide tools, or to be started by `proxy` and `serve`.
# servers:
#   filesystem:
#     command: npx
#     args: ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]
#     expose: {block: [write_file]}

# The first rule that matches decides.
rules:
  # A tool that its server calls destructive. The server writes these annotations itself,
  # so they can make a verdict stricter, never laxer.
  - id: starter-annotations
    kind: tool
    annotations: {destructiveHint: true, readOnlyHint: {ne: true}}
    action: approve
    reason: the server says that this tool destroys

  - id: starter-deletes
    kind: tool
    words: [delete, deletes, del, remove, removes, rm, rmdir, drop, destroy, erase, purge, truncate,
            wipe, unlink, uninstall, revoke, reset, format, kill, terminate]
    action: approve
    reason: the name says that this tool deletes

  - id: starter-overwrites
    kind: tool
    words: [overwrite, write, replace, edit, patch, rename, move, mv, chmod, chown]
    action: approve
    reason: the name says that this tool overwrites

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

# Who is asked: here the console in the browser, for five minutes, then the call is denied.
approval:
  default: {channel: console, timeout: 5m, on_timeout: deny}
"""
