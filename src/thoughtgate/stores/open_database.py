"""Opens the store that a config names: the SQLite file of a state directory, or PostgreSQL."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from thoughtgate.stores.database import Database
from thoughtgate.stores.engines.sqlite import open_sqlite

SQLITE: Final = "sqlite"


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """Where shared state is stored."""

    directory: Path
    """The state directory, with the SQLite file."""
    url: str = field(default=SQLITE, repr=False)
    """``sqlite`` or a ``postgresql://`` URL. It may contain a password, so it is never printed."""
    ignores_environment: bool = False
    """Whether variables such as ``PGSSLMODE`` must not change how the database is reached."""

    @property
    def is_shared(self) -> bool:
        """Whether gates on other machines use the same store."""
        return self.url != SQLITE

    @property
    def may_exist(self) -> bool:
        """Whether there may be a store; a command that only looks must not create one."""
        return self.is_shared or self.directory.is_dir()


def open_database(location: StoreLocation | Path | str) -> Database:
    """Open a store, creating its file or its tables if necessary.

    A path is a state directory, with a SQLite file.

    Raises:
        StoreError: it cannot be used; the text says what to do.
    """
    if not isinstance(location, StoreLocation):
        location = StoreLocation(Path(location))
    if not location.is_shared:
        return open_sqlite(location.directory)
    # Imported here: psycopg is an optional dependency, and a shim must not load it.
    from thoughtgate.stores.engines.postgres import open_postgres

    return open_postgres(location.url, ignores_environment=location.ignores_environment)
