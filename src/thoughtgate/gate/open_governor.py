"""Opens a governor: policy, record and approval queue from a loaded config.

All products assemble these parts here, so that no product can leave one out.
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thoughtgate.channels.channel import Channel
from thoughtgate.core.envelope import TRAFFIC, Envelope, Run
from thoughtgate.core.judge import Judge
from thoughtgate.core.record_events import Record
from thoughtgate.core.task_table import TaskLimits
from thoughtgate.errors import ConfigError, Problem, RecordError, UsageError
from thoughtgate.gate.approvals.open_channels import Reports, open_channels
from thoughtgate.gate.approvals.prompt_seals import open_seals
from thoughtgate.gate.approvals.queue import ApprovalQueue, open_approvals
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.config_requirements import sign_key_fault
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.keys import KeyPlace
from thoughtgate.gate.operator_log import operator_messages
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
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.process_owner import own_name
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
    location = store_location(loaded, state)
    reports = Reports()
    # The development profile holds no call, so it must not notify anyone.
    if policy.profile == PRODUCTION:
        made = open_channels(settings, environ, location, file=loaded.path or "", reports=reports)
        channels = [*channels, *made]
    run = identify_run(environ, policy.profile, state)
    writer = _open_record(loaded, environ, record_place(loaded, state, audit), run, state)
    held = Limits(settings.holds.principal, settings.holds.total)
    tracer = open_tracer(settings.telemetry)
    database = open_database(location)
    approvals = open_approvals(database, settings.approval, policy, channels=channels, limits=held)
    announcer = _announcer(loaded, state, audit, governed or {})
    governor = Governor(
        Judge(
            policy,
            run.calls_prefix or run.run_id,
            preview=settings.audit.preview,
            count=_open_counts(location, count_with),
        ),
        writer,
        run,
        approvals=approvals,
        tasks=tasks,
        task_limits=TaskLimits(settings.tasks.per_principal, settings.tasks.total),
        task_ttl_s=(settings.tasks.ttl_s, settings.tasks.max_ttl_s),
        observe=observe,
        reports=reports.fetch,
        on_failure=settings.audit.on_failure,
        announcer=announcer,
    )
    # Set afterwards because the writer exists before the governor; a reload can change the answer.
    writer.refuses = governor.refuses_unrecorded
    if tracer is not None:
        governor.draw, governor.trace = tracer.observe, tracer.outgoing
    _share(governor, loaded, state, database, approvals)
    if database.is_shared:
        governor.health["store"] = lambda: not database.is_away
        announcer.shared = _open_row(loaded, database, governor, approvals, reports)
    return governor


def _share(
    governor: Governor, loaded: Loaded, state: str, database: Database, approvals: ApprovalQueue
) -> None:
    """Give a governor what it keeps in the store besides approvals."""
    governor.policies = [source.as_recorded() for source in loaded.sources]
    governor.policy_questions = approvals.policy_questions(
        partial(open_database, Path(state)) if database.is_shared else None
    )
    governor.seals = open_seals(
        key_place(loaded, state), loaded.path or "-", lambda: governor.policy.version, database
    )


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
    return GateRow(database, say, details, LostCalls(approvals, reports.put, say).settle)


def _open_record(
    loaded: Loaded, environ: Mapping[str, str], place: str, run: Run, state: str
) -> RecordWriter | SplitWriter:
    audit = loaded.settings.audit
    say = operator_messages("record", loaded, level="error")
    is_file = place not in STREAMS and not is_stream(place)
    if not is_file and Path(place).parent == Path(state):
        # In our own directory a device or a pipe was not put there by the user.
        raise RecordError(f"{place}: the record must be a regular file; move this one away")
    heads = HeadKeeper(Path(state), say) if is_file else None
    shipper = _open_shipper(loaded, place, run, state, say) if is_file else None
    open_file = partial(
        RecordWriter,
        on_failure=audit.on_failure,
        rotate_bytes=audit.rotate_size,
        keep=audit.rotate_keep,
        retain_s=audit.retain_s,
        may_remove=shipper.may_remove if shipper is not None else lambda _path, _number: True,
        fsync=audit.fsync,
        sign_key=_sign_key(loaded, environ),
        heads=heads,
        say=say,
    )
    calls = open_file(place, Envelope(run))
    if not is_file:
        return calls
    other = traffic_path(Path(place))
    split = SplitWriter(calls, lambda: open_file(other, Envelope(run, TRAFFIC)), heads=heads)
    if shipper is not None:
        split.on_close = shipper.close
        shipper.start()
    return split


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
    return StoreLocation(Path(state), loaded.settings.store)


def key_place(loaded: Loaded, state: str) -> KeyPlace:
    """Return where the keys of a gate are; the config's file is relative to the config."""
    file = loaded.settings.keys.file
    base = Path(loaded.path).absolute().parent if loaded.path else Path.cwd()
    return KeyPlace(state, str(base / Path(file).expanduser()) if file else "")


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
