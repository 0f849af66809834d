"""200 approvals, raced by three gates and five deciders: each is used once, whatever the database does."""

import multiprocessing
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.approvals import CALL, an_approval
from tests.support.postgres import DATABASE, USER, PostgresServer
from tests.support.waiting import PATIENCE_S, wait_for

from thoughtgate.core.approval import APPROVED, PENDING, USED, Approval, Vote, digest_of
from thoughtgate.errors import StoreError
from thoughtgate.stores.approvals import ApprovalStore, Limits
from thoughtgate.stores.open_database import StoreLocation, open_database

NUMBER = 200
GATES = 3
DECIDERS = 5
LIMITS = Limits(per_principal=NUMBER, total=NUMBER)
TIME_S = 150.0


def opened(url: str) -> ApprovalStore:
    """Open the store as a gate does, for as long as it takes until the database is there."""
    deadline = time.monotonic() + TIME_S
    while True:
        try:
            database = open_database(StoreLocation(Path("/nowhere"), url))
            return ApprovalStore(database, alive=lambda _: True)
        except StoreError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def use_all(url: str, used: "multiprocessing.Queue[str]") -> None:
    """Use every approval that can be used, and report each that the store gave us."""
    store, deadline = opened(url), time.monotonic() + TIME_S
    while time.monotonic() < deadline:
        try:
            found = store.listed(PENDING, APPROVED)
            if not found:
                break
            approved = [one for one in found if one.status == APPROVED]
            random.shuffle(approved)
            for one in approved:
                if isinstance(store.use(one.id, one.digest, time.time()), Approval):
                    used.put(one.id)
        except StoreError:
            time.sleep(0.05)
    used.put("")
    used.close()
    used.join_thread()


def decide_all(url: str, name: str) -> None:
    """Approve everything, as one of five people who all answer at once."""
    store, deadline = opened(url), time.monotonic() + TIME_S
    while time.monotonic() < deadline:
        try:
            pending = store.listed(PENDING)
            if not pending:
                return
            random.shuffle(pending)
            for one in pending:
                store.vote(one.id, [Vote(name, approve=True, at=time.time())], time.time())
                time.sleep(0.002)
        except StoreError:
            time.sleep(0.05)


def race(url: str, disturb: Callable[[], None]) -> tuple[Counter[str], ApprovalStore]:
    """Ask, race, disturb; return how often each approval was used, and the store."""
    store = opened(url)
    now = time.time()
    for number in range(NUMBER):
        call = CALL._replace(arguments={"path": f"/tmp/{number}"})
        asked = an_approval(
            id=f"n{number}",
            call_id=f"run.{number}",
            digest=digest_of(call, "v1"),
            created_at=now,
            expires_at=now + 3600,
            owner="gate|asker",
        )
        assert isinstance(store.ask(asked, now, LIMITS), Approval)
    spawn = multiprocessing.get_context("spawn")
    used: multiprocessing.Queue[str] = spawn.Queue()
    processes = [spawn.Process(target=use_all, args=(url, used)) for _ in range(GATES)]
    people = [f"console:p{number}" for number in range(DECIDERS)]
    processes += [spawn.Process(target=decide_all, args=(url, name)) for name in people]
    for process in processes:
        process.start()
    try:
        counted: Counter[str] = Counter()
        finished = 0
        disturbed = False
        while finished < GATES:
            ident = used.get(timeout=TIME_S)
            finished += not ident
            counted[ident] += 1
            if not disturbed and sum(counted.values()) >= NUMBER // 4:
                disturbed = True
                disturb()
        for process in processes:
            process.join(PATIENCE_S)
            assert process.exitcode == 0
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
    del counted[""]
    return counted, store


def check(counted: Counter[str], store: ApprovalStore, *, lost: int) -> None:
    """Every approval was used, at most once; of as many as gates, the answer may have been lost."""
    assert set(counted.values()) == {1}
    assert {one.status for one in store.listed()} == {USED}
    assert NUMBER - lost <= len(counted) <= NUMBER
    store.close()


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    made = PostgresServer("fsync=on", "max_wal_senders=4")
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.mark.long
@pytest.mark.promise("approval-is-exact")
def test_across_a_crash_of_the_database(server: PostgresServer) -> None:
    def disturb() -> None:

        server.stop(signal.SIGQUIT)
        server.start()

    check(*race(server.url(), disturb), lost=GATES)


@pytest.mark.long
@pytest.mark.promise("approval-is-exact")
def test_across_a_failover_to_a_synchronous_standby(server: PostgresServer) -> None:

    server.execute("SELECT 1")
    standby = server.standby()
    wait_for(
        lambda: server.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"),
        what="the standby",
    )
    hosts = f"127.0.0.1:{server.port},127.0.0.1:{standby.port}"

    def disturb() -> None:
        server.stop(signal.SIGQUIT)
        standby.promote()

    try:
        check(*race(f"postgresql://{USER}@{hosts}/{DATABASE}", disturb), lost=GATES)
    finally:
        standby.remove()
