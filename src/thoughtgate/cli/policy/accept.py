"""``thoughtgate policy accept``: accept a changed config before a gate asks about it."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Annotated, Any, Final

from typer import Argument, Option, confirm

from thoughtgate.channels.terminal import identity
from thoughtgate.cli.options import JsonOption, examples, read_config
from thoughtgate.cli.output import write_report
from thoughtgate.core.approval import PENDING, POLICY_KIND
from thoughtgate.errors import ConfigError, UsageError, visible
from thoughtgate.gate.approvals.policy_questions import why_not_accept
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.open_governor import store_location
from thoughtgate.gate.policy_files.accepted_policy import load_accepted, replaced_files
from thoughtgate.gate.policy_files.policy_change import EFFECTS, find_change
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.policies import AcceptedPolicy

ACCEPT_EXAMPLES: Final = examples(
    "thoughtgate policy accept",
    "thoughtgate policy accept thoughtgate.yaml --yes",
)

_STARTER: Final = "Accepted: the built-in policy is used from now on."


def accept_command(
    file: Annotated[
        str | None, Argument(metavar="FILE", help="Config file. Default: the one that is found.")
    ] = None,
    *,
    yes: Annotated[bool, Option("--yes", help="Accept without asking.")] = False,
    json_: JsonOption = False,
) -> None:
    """Show how a config differs from the one last accepted, and accept it.

    Running gates apply it at once, and gates that agents start no longer ask about it.
    """
    loaded = read_config(file)
    state = state_directory(os.environ)
    # Gates that agents start look in the state directory, wherever the configured store is.
    with closing(open_store(state)) as store:
        others = replaced_files(loaded, os.environ, store.policies())
        if loaded.path is None and not others:
            raise UsageError("there is no config file to accept; 'thoughtgate init' writes one")
        if others:
            sys.stderr.write(f"No longer used: {visible(', '.join(others))}\n")
            _require_consent(yes=yes)
        for path in others:
            store.policies().forget(path)
        if loaded.path is None:
            write_report({"path": None, "accepted": True}, [_STARTER], as_json=json_)
            return
        kept = store.policies().accepted(loaded.own_file.path)
        is_same = kept is not None and kept.file.digest == loaded.own_file.digest
        shown = _difference(kept, loaded)
        if not json_:
            sys.stdout.writelines(f"{line}\n" for line in _lines(shown))
        if not is_same:
            _require_approver(kept, loaded)
            _require_consent(yes=yes)
            _accept(store, loaded)
            location = store_location(loaded, state)
            if location.is_shared:
                # Running gates that share this store look there.
                with closing(open_store(location)) as shared:
                    _accept(shared, loaded)
    report = {"path": loaded.own_file.path, "accepted": not is_same, "difference": shown}
    done = "Nothing to accept: this is" if is_same else "Accepted"
    write_report(report, [f"{done} {loaded.own_file.path}."], as_json=json_)


def _difference(kept: AcceptedPolicy | None, loaded: Loaded) -> dict[str, Any]:
    """Return the difference from the accepted config; empty if there is none to compare with."""
    if kept is None or kept.file.digest == loaded.own_file.digest:
        return {}
    try:
        old = load_accepted(kept, loaded, os.environ)
    except ConfigError as error:
        return {"cannot_be_told": [str(problem) for problem in error.problems]}
    return dict(find_change(old, loaded, os.environ, time.time()).shown)


def _lines(shown: dict[str, Any]) -> Iterator[str]:
    for name in (*EFFECTS, "applies_after_restart", "files"):
        found: Iterable[str] = shown.get(name, ())
        if found:
            yield name.upper().replace("_", " ")
            yield from (f"  {visible(line)}" for line in found)


def _require_approver(kept: AcceptedPolicy | None, loaded: Loaded) -> None:
    """Check that this person may accept the organisation's file, as its accepted version says.

    Raises:
        UsageError: this person cannot accept it alone.
        ConfigError: the accepted version cannot be loaded any more.
    """
    if kept is None or loaded.floor is None or loaded.floor_file.path != loaded.own_file.path:
        return
    old = load_accepted(kept, loaded, os.environ)
    workflow = old.settings.approval.get(old.floor.workflow) if old.floor is not None else None
    why = why_not_accept(loaded.own_file, workflow, identity()) if workflow is not None else ""
    if why:
        raise UsageError(f"{loaded.own_file.path} is the organisation's: {why}")


def _require_consent(*, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "this is not a terminal; to accept the config without a question, add --yes"
        )
    confirm("Accept this config?", abort=True, err=True)


def _accept(store: ApprovalStore, loaded: Loaded) -> None:
    now = time.time()
    file = loaded.own_file
    store.policies().accept(file, identity(), now)
    for asked in store.listed(PENDING):
        if asked.kind == POLICY_KIND and asked.tool == file.path:
            store.withdraw(asked.id, f"decided by {identity()} with policy accept", now)
