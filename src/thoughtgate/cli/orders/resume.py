"""``thoughtgate resume``: remove a stop order, so that gates accept the calls again."""

from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples, find_store
from thoughtgate.cli.orders.stop import AllOption, PrincipalOption, ServerOption, chosen_target
from thoughtgate.cli.output import write_report
from thoughtgate.errors import Conflict, visible
from thoughtgate.policy.stops import StopOrder
from thoughtgate.status.stop_actions import StopActions

app = command_app()


@app.command(
    epilog=examples("thoughtgate resume --server github", "thoughtgate resume --all"),
)
def resume(
    *,
    server: ServerOption = None,
    principal: PrincipalOption = None,
    all_: AllOption = False,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Remove a stop order; gates accept the calls again within a second.

    --all removes the order of 'stop --all'; orders for single servers and principals stay.
    """
    scope, name = chosen_target(server, principal, all_=all_)
    actions, target = StopActions(find_store(config)), StopOrder(scope, name).target
    if not actions.resume(scope, name):
        stopped = ", ".join(one.target for one in actions.listed()) or "nothing"
        raise Conflict(
            f"there is no stop order for {visible(target)}; stopped: {visible(stopped)}"
            " (thoughtgate stop --list)"
        )
    left = [one.target for one in actions.listed()]
    lines = [f"Resumed {visible(target)}."]
    if left:
        lines.append(f"Still stopped: {visible(', '.join(left))}.")
    write_report({"scope": scope, "name": name, "still_stopped": left}, lines, as_json=json_)
