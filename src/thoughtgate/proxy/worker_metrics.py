"""Metrics of workers that share a port: the worker that is scraped answers for all of them.

Each worker writes its metrics to a file, every second and whenever it is scraped, and reads the
files of the others. No worker waits for a busy one, and no counter ever decreases: a page's values
are in the files before the page is sent.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.state_directory import ensure_directory
from thoughtgate.stores.process_owner import is_alive, own_name
from thoughtgate.telemetry.metric_table import HTTP
from thoughtgate.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

DIRECTORY: Final = "workers"

_ENDED: Final = ".ended.json"

TELL_S: Final = 1.0
"""How often a worker writes its metrics, and so how far a page may lag behind."""


@contextlib.contextmanager
def metrics_directory(state: str) -> Iterator[str]:
    """Yield the directory for the metrics of this process's workers, while they run.

    Raises:
        StoreError: it cannot be created.
    """
    place = Path(ensure_directory(state), DIRECTORY)
    # Directories of processes that were killed before they could remove them.
    with contextlib.suppress(FileNotFoundError):
        for left in place.iterdir():
            if not is_alive(left.name):
                shutil.rmtree(left, ignore_errors=True)
    directory = ensure_directory(str(place / own_name()))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def keep_counters(directory: str, pid: int) -> None:
    """Note that a worker has ended: its counters still count, its gauges no longer do."""
    with contextlib.suppress(OSError):
        Path(directory, f"{pid}.json").rename(Path(directory, f"{pid}{_ENDED}"))


class WorkerMetrics(Metrics):
    """One worker's metrics, rendered together with those of the other workers."""

    def __init__(self, directory: str) -> None:
        super().__init__(HTTP)
        self._path = Path(directory, f"{os.getpid()}.json")
        self._told = b""

    def render(self) -> bytes:
        """Return the metrics of all workers in the Prometheus text format."""
        from thoughtgate.telemetry.merging import render_merged  # see ``telemetry.metrics``

        families = list(self.families())
        self._tell(families)
        return render_merged(families, self._others())

    @contextlib.asynccontextmanager
    async def telling(self, refresh: Callable[[], None]) -> AsyncIterator[None]:
        """Write the metrics regularly in the meantime; ``refresh`` updates them first."""
        task = spawn(self._keep_telling(refresh))
        try:
            yield
        finally:
            await finish(task)
            refresh()
            self._tell(list(self.families()))

    async def _keep_telling(self, refresh: Callable[[], None]) -> None:
        while True:
            refresh()
            self._tell(list(self.families()))
            await asyncio.sleep(TELL_S)

    def _tell(self, families: "list[Family]") -> None:
        """Write the metrics if they changed; a worker that cannot write them still serves."""
        from thoughtgate.telemetry.merging import encode_metrics

        told = encode_metrics(families)
        if told == self._told:
            return
        temporary = self._path.with_suffix(".tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with contextlib.suppress(OSError):
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(told)
            temporary.replace(self._path)
            self._told = told

    def _others(self) -> "Iterator[list[Family]]":
        from thoughtgate.telemetry.merging import decode_metrics

        for path in sorted(self._path.parent.glob("*.json")):
            if path != self._path:
                with contextlib.suppress(OSError, ValueError):
                    families = decode_metrics(path.read_bytes())
                    if path.name.endswith(_ENDED):
                        families = [one for one in families if one.type != "gauge"]
                    yield families
