"""Opens a governor: policy, record and approval queue from a loaded config.

All products assemble these parts here, so that no product can leave one out.
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thoughtgate.channels.answer_places import AnswerPlaces
from thoughtgate.channels.channel import Channel
from thoughtgate.config.settings import ServerSettings, TelemetrySettings
from thoughtgate.core.envelope import TRAFFIC, Envelope, Run, SessionPeers
from thoughtgate.core.judge import Judge
from thoughtgate.core.record_events import Record
from thoughtgate.core.task_table import TaskLimits
from thoughtgate.errors import ConfigError, Problem, RecordError, UsageError
from thoughtgate.gate.approvals.open_channels import LOCAL_CHANNELS, Reports, open_channels
from thoughtgate.gate.approvals.prompt_seals import open_seals
from thoughtgate.gate.approvals.queue import ApprovalQueue, open_approvals
from thoughtgate.gate.approvals.started_by_agent import is_inside_agent
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.config_requirements import sign_key_fault
from thoughtgate.gate.definitions.watch import DefinitionWatch
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.keys import KeyPlace, place_of_keys
from thoughtgate.gate.operator_log import operator_messages
from thoughtgate.gate.orders.stop_watch import StopWatch
from thoughtgate.gate.run_identity import identify_run
from thoughtgate.gate.running_gates import GateAnnouncer, SharedAnnouncement
from thoughtgate.gate.task_runner import Keeper
from thoughtgate.gate.tracing import open_tracer
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.policy.limits import Limit, LimitState
from thoughtgate.record.file import traffic_path
from thoughtgate.record.head_keeper import HeadKeeper
from thoughtgate.record.split_writer import SplitWriter
from thoughtgate.record.stream import STREAMS, is_stream
from thoughtgate.record.writer import RecordWriter
from thoughtgate.stores.approvals import Limits
from thoughtgate.stores.database import Database
from thoughtgate.stores.facts import FactStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.pins import PinStore
from thoughtgate.stores.process_owner import own_name
from thoughtgate.stores.record_heads import find_head
from thoughtgate.stores.server_tasks import ServerTaskStore
from thoughtgate.stores.tasks import TaskStore

if TYPE_CHECKING:
    from thoughtgate.record.shipper import RecordShipper

RECORD_FILE = "audit.jsonl"
"""The record's file name in the state directory if the config names none."""


def open_governor(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    *,
    audit: str = "",
    tasks: Keeper | None = None,
    channels: Sequence[Channel] = (),
    observe: Callable[[Record], None] | None = None,
    governed: Mapping[str, Any] | None = None,
    count_with: str = "",
) -> Governor:
    """Open the record and return a governor for a new run.

    ``governed`` describes the agent, if it is known which process it is (``describe_governed``).
    ``count_with`` names the run whose processes count limits together.

    Raises:
        ConfigError: the variable of the record's signing key or of a channel's secret is not
            set, or the key is too short.
        RecordError: the record cannot be opened.
        StoreError: the store cannot be opened, so no approval can be requested.
        UsageError: tracing is configured, but its optional dependency is not installed.
    """
    settings, policy = loaded.settings, loaded.policy
    location, reports = store_location(loaded, state), Reports()
    is_agents_own = is_inside_agent(environ, state, wrapped_only=loaded.agent_started)
    places = AnswerPlaces(settings.console.public_url.rstrip("/"), settings.notify.agent)
    # The development profile holds no call, so it must not notify anyone.
    if policy.profile == PRODUCTION and not (is_agents_own and _has_remote_channels(loaded)):
        channels = [*channels, *_open_channels(loaded, environ, location, reports, places)]
    run = identify_run(environ, policy.profile, state)
    writer, peers = _open_record(loaded, environ, audit, run, state, keeps_all=is_agents_own)
    database = open_database(location)
    held = Limits(settings.holds.principal, settings.holds.total)
    approvals = open_approvals(
        database, settings.approval, policy, channels=channels, limits=held, places=places
    )
    count = _open_counts(location, count_with)
    governor = Governor(
        _make_judge(loaded, run, count, FactStore(database)),
        writer,
        run,
        approvals=approvals,
        tasks=tasks,
        task_limits=TaskLimits(settings.tasks.per_principal, settings.tasks.total),
        task_ttl_s=(settings.tasks.ttl_s, settings.tasks.max_ttl_s),
        observe=observe,
        reports=reports.fetch,
        on_failure=settings.audit.on_failure,
        announcer=(announcer := _announcer(loaded, state, audit, governed or {})),
    )
    # Set afterwards because the writer exists before the governor; a reload can change the answer.
    writer.refuses, governor.peers = governor.refuses_unrecorded, peers
    governor.answer_places = places
    _trace(governor, settings.telemetry)
    _share(governor, loaded, state, database, approvals)
    if database.is_shared:
        governor.health["store"] = lambda: not database.is_away
        announcer.shared = _open_row(loaded, database, governor, approvals, reports)
    return governor


def _make_judge(
    loaded: Loaded,
    run: Run,
    count: Callable[[Sequence[Limit]], LimitState],
    facts: FactStore,
) -> Judge:
    """Return the judge of a run."""
    prefix, preview = run.calls_prefix or run.run_id, loaded.settings.audit.preview
    return Judge(loaded.policy, prefix, preview=preview, count=count, facts=facts)


def _trace(governor: Governor, settings: TelemetrySettings) -> None:
    """Draw spans of calls, if the config asks for that."""
    tracer = open_tracer(settings)
    if tracer is not None:
        governor.draw, governor.trace = tracer.observe, tracer.outgoing


def _open_channels(
    loaded: Loaded,
    environ: Mapping[str, str],
    location: StoreLocation,
    reports: Reports,
    places: AnswerPlaces,
) -> list[Channel]:
    """Return the channels that a config names."""
    file = loaded.path or ""
    return open_channels(
        loaded.settings, environ, location, file=file, reports=reports, places=places
    )


def _has_remote_channels(loaded: Loaded) -> bool:
    """Tell whether a config names channels, and say that a gate of a governed agent uses none.

    The agent chose the variables of such a gate: secrets of channels, proxies and certificates.
    Another gate would use what was approved here, so this one only asks where people look by
    themselves.
    """
    found = any(one.channel not in LOCAL_CHANNELS for one in loaded.settings.approval.values())
    if found:
        say = operator_messages("approvals", loaded, level="warn")
        say(
            "a governed agent started this gate, so its channels are not used; answer approval"
            " requests in the console, or with: thoughtgate approvals"
        )
    return found


def _share(
    governor: Governor, loaded: Loaded, state: str, database: Database, approvals: ApprovalQueue
) -> None:
    """Give a governor what it keeps in the store besides approvals."""
    governor.stop_watch = StopWatch(database, operator_messages("store", loaded, level="error"))
    governor.server_tasks = ServerTaskStore(database)
    governor.policies = [source.as_recorded() for source in loaded.sources]
    governor.policy_questions = approvals.policy_questions(
        partial(open_database, Path(state)) if database.is_shared else None
    )
    governor.definitions = DefinitionWatch(
        governor.judge,
        PinStore(database),
        approvals.definition_questions(),
        operator_messages("definitions", loaded, level="warn"),
        {name: identity_of(one) for name, one in loaded.settings.servers.items()},
    )
    governor.definitions.note = governor.note
    governor.later.say = operator_messages("contents", loaded, level="warn")
    governor.seals = open_seals(
        key_place(loaded, state), loaded.path or "-", lambda: governor.policy.version, database
    )


def identity_of(server: ServerSettings) -> tuple[str, ...]:
    """Return what makes a server the same one as before: its command line or its URL."""
    if server.url:
        return (server.url,)
    return (server.command, *server.args) if server.command else ()


def _announcer(
    loaded: Loaded, state: str, audit: str, governed: Mapping[str, Any]
) -> GateAnnouncer:
    return GateAnnouncer(
        state,
        config=loaded.path,
        policy=loaded.summary,
        policies=[source.as_json() for source in loaded.sources],
        profile=loaded.policy.profile,
        record=announced_record(loaded, state, audit),
        **governed,
    )


def _open_row(
    loaded: Loaded,
    database: Database,
    governor: Governor,
    approvals: ApprovalQueue,
    reports: Reports,
) -> SharedAnnouncement:
    # Imported here: a gate with a store of its own needs none of it.
    from thoughtgate.gate.approvals.gate_row import GateRow
    from thoughtgate.gate.approvals.lost_calls import LostCalls

    def details() -> dict[str, Any]:
        return {
            "held": approvals.pending,
            "policy_version": governor.policy.version,
            "degraded": governor.degraded(),
        }

    say = operator_messages("store", loaded, level="error")
    settle_lost, stop_watch = LostCalls(approvals, reports.put, say).settle, governor.stop_watch

    def chores() -> None:
        if stop_watch is not None:
            stop_watch.refresh()
        settle_lost()

    return GateRow(database, say, details, chores)


def _open_record(
    loaded: Loaded,
    environ: Mapping[str, str],
    told: str,
    run: Run,
    state: str,
    *,
    keeps_all: bool,
) -> tuple[RecordWriter | SplitWriter, SessionPeers]:
    """Open the record; also return what it says about the agent of each session.

    With ``keeps_all`` no old file is removed: a governed agent could have chosen how many are kept.
    """
    peers = SessionPeers()
    place, audit = record_place(loaded, state, told), loaded.settings.audit
    say = operator_messages("record", loaded, level="error")
    is_file = place not in STREAMS and not is_stream(place)
    if not is_file and place not in STREAMS and _was_replaced(Path(place).absolute(), Path(state)):
        raise RecordError(f"{place}: the record must be a regular file; move this one away")
    heads = HeadKeeper(Path(state), say) if is_file else None
    shipper = _open_shipper(loaded, place, run, state, say) if is_file else None
    open_file = partial(
        RecordWriter,
        on_failure=audit.on_failure,
        rotate_bytes=audit.rotate_size,
        keep=audit.rotate_keep,
        retain_s=audit.retain_s,
        may_remove=lambda path, number: (
            not keeps_all and (shipper is None or shipper.may_remove(path, number))
        ),
        fsync=audit.fsync,
        sign_key=_sign_key(loaded, environ),
        heads=heads,
        say=say,
    )
    calls = open_file(place, Envelope(run, peers=peers))
    if not is_file:
        return calls, peers
    other = traffic_path(Path(place))

    def open_traffic() -> RecordWriter:
        return open_file(other, Envelope(run, TRAFFIC, peers))

    split = SplitWriter(calls, open_traffic, heads=heads)
    if shipper is not None:
        split.on_close = shipper.close
        shipper.start()
    return split, peers


def _was_replaced(place: Path, state: Path) -> bool:
    """Tell whether a device or a pipe is where the user did not put one.

    That is our own directory, and every place at which a gate wrote a file before.
    """
    return place.is_relative_to(state.absolute()) or find_head(state, place) is not None


def _open_shipper(
    loaded: Loaded, place: str, run: Run, state: str, say: Callable[[str], None]
) -> "RecordShipper | None":
    """Return what copies the record to the ledger that gates share, if the store is shared."""
    location = store_location(loaded, state)
    if not location.is_shared:
        return None
    # Imported here: a shim with a SQLite store must not load it.
    from thoughtgate.record.shipper import RecordShipper

    path = Path(place).absolute()
    retain_s = loaded.settings.audit.retain_s
    return RecordShipper(path, location, run.host_id, retain_s=retain_s, say=say)


def _open_counts(location: StoreLocation, run: str) -> Callable[[Sequence[Limit]], LimitState]:
    """Return how limits are counted: in memory, or in a store if other processes count too."""
    if not location.is_shared and not run:
        return LimitState
    # Imported here: most gates count in memory, and a shim must stay small.
    from thoughtgate.policy.shared_limits import SharedLimitState
    from thoughtgate.stores.limit_tables import LimitTables
    from thoughtgate.stores.limits import LimitStore

    database = open_database(location)
    if not location.is_shared:
        LimitTables(database).remove_ended_runs()
    counts = LimitStore(database, "" if location.is_shared else run, own_name())
    return partial(SharedLimitState, counts=counts)


def store_location(loaded: Loaded, state: str) -> StoreLocation:
    """Return where a config stores what processes share."""
    return StoreLocation(Path(state), loaded.settings.store, loaded.agent_started)


def key_place(loaded: Loaded, state: str) -> KeyPlace:
    """Return where the keys of a gate are."""
    return place_of_keys(state, loaded.settings.keys.file, loaded.path or "")


def open_tasks(location: StoreLocation, gate: str) -> TaskStore:
    """Open the task store of a gate that authenticates its callers.

    ``gate`` identifies the gate across runs, so that the next run finds its tasks.

    Raises:
        StoreError: the store cannot be opened.
    """
    return TaskStore(open_database(location), gate, own_name())


def record_place(loaded: Loaded, state: str, audit: str = "") -> str:
    """Return where the record goes: ``--audit``, else the config's sink or file.

    A relative file name is relative to the state directory.
    """
    chosen = loaded.settings.audit
    if audit:
        return audit
    if chosen.sink != "file":
        return chosen.sink
    # Not relative to the config file: the agent may be able to write to that directory.
    return str(Path(state, chosen.file or RECORD_FILE))


def announced_record(loaded: Loaded, state: str, audit: str = "") -> str:
    """Return where the record goes, as a path that is valid in every working directory."""
    place = record_place(loaded, state, audit)
    return place if place in STREAMS else str(Path(place).absolute())


def _sign_key(loaded: Loaded, environ: Mapping[str, str]) -> bytes:
    name = loaded.settings.audit.sign_key_env
    if not name:
        return b""
    wrong = sign_key_fault(name, environ)
    if wrong:
        raise ConfigError([Problem("audit.sign_key_env", wrong, loaded.path or "")])
    return environ[name].encode()


def refuse_stdout(place: str, told: str) -> None:
    """Refuse to write the record to stdout, because stdout carries MCP.

    Raises:
        ConfigError: the config names stdout.
        UsageError: the command line names stdout.
    """
    if not _is_stdout(place):
        return
    text = "stdout carries MCP; the record goes to stderr or a file"
    if told:
        raise UsageError(f"--audit {told}: {text}")
    raise ConfigError([Problem("audit.sink", text)])


def _is_stdout(place: str) -> bool:
    if place == "stdout":
        return True
    try:
        status = Path(place).stat()
    except OSError:
        return False
    # A path such as /dev/fd/1 can also be our stdout. A character device is accepted: with
    # stdout and the record both on /dev/null, nothing is mixed.
    return not stat.S_ISCHR(status.st_mode) and os.path.samestat(status, os.fstat(1))
