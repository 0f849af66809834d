"""Finds and reads the config file: the only part of loading that touches the disk."""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from thoughtgate.config.build import build_policy
from thoughtgate.config.document import MAX_BYTES, Document
from thoughtgate.config.load import load_settings
from thoughtgate.config.locate import candidate_paths
from thoughtgate.config.parse import parse
from thoughtgate.config.secrets import secret_names
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.errors import ConfigError, Problem, UsageError
from thoughtgate.gate.approvals.installed_channels import installed_channels
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.starter import STARTER_TEXT
from thoughtgate.stores.policies import PolicyFile

STARTER_FILE: Final = "built-in starter policy"
TEXT_FILE: Final = "config text"

_NO_CONFIG: Final = (
    "no config file found: the built-in starter policy applies"
    " (thoughtgate init writes it as a file)"
)

PROFILES: Final = (PRODUCTION, DEVELOPMENT)

_REDACTOR: Final = Redactor()

_SECRET_ENDINGS: Final = (
    "_TOKEN",
    "_KEY",
    "_SECRET",
    "_PASSWORD",
    "_PASSWD",
    "_PAT",
    "_CREDENTIALS",
)
"""Suffixes of the names of variables that hold secrets."""

_MOUNTED: Final = "..data/"
"""Kubernetes mounts a ConfigMap as symlinks into this directory; no other symlink is followed."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that was read and checked."""

    settings: Settings
    policy: Policy
    path: str | None
    """The file that it was read from; None for the built-in starter policy and for ``load_text``."""
    warnings: tuple[str, ...] = ()
    """Messages for the operator, one line each."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The text of every file that it was read from, by its absolute path."""
    proposed: "Loaded | None" = None
    """What the files say now, if that waits for a person and this config is the one before."""

    @property
    def own_file(self) -> PolicyFile:
        """The config file and the policy files that it names, with their texts."""
        if self.path is None:
            return PolicyFile.of("", {})
        path = absolute_path(self.path)
        around = Path(path).parent
        names = [path, *(str(around / source.file) for source in self.settings.cedar)]
        return PolicyFile.of(path, {name: self.texts[name] for name in names})


def load_configuration(
    flag: str | None, environ: Mapping[str, str], cwd: str, *, profile: str | None = None
) -> Loaded:
    """Find, read and check the config file; without one, use the starter policy.

    ``profile`` is the one on the command line and takes precedence.

    Raises:
        UsageError: there is no such profile.
        ConfigError: the named file is missing, or a file is unreadable or invalid.
    """
    _check_profile(profile)
    path = find_config(flag, environ, cwd)
    if path is None:
        loaded = _load(STARTER_TEXT, STARTER_FILE, environ, cwd, profile)
        return replace(loaded, warnings=(_NO_CONFIG,))
    text, warnings = _read_config(path)
    loaded = _load(text, path, environ, str(Path(path).parent), profile)
    return replace(
        loaded,
        path=path,
        warnings=tuple(warnings),
        texts={absolute_path(path): text, **loaded.texts},
    )


def load_kept(
    path: str, texts: Mapping[str, str], environ: Mapping[str, str], *, profile: str | None = None
) -> Loaded:
    """Load a config from texts that were kept, as if its files still held them.

    Raises:
        ConfigError: the texts are no valid config, or one is missing.
    """

    def read(name: Path) -> str:
        if absolute_path(name) not in texts:
            raise FileNotFoundError(errno.ENOENT, "its text was not kept", str(name))
        return texts[absolute_path(name)]

    text = read(Path(path))
    loaded = _load(text, path, environ, str(Path(path).parent), profile, read=read)
    return replace(loaded, path=path, texts=texts)


def load_text(
    text: str, environ: Mapping[str, str], directory: str, *, profile: str | None = None
) -> Loaded:
    """Check a config that is not in a file; the files it names are relative to ``directory``.

    Raises:
        UsageError: there is no such profile.
        ConfigError: the text is invalid.
    """
    _check_profile(profile)
    return _load(text, TEXT_FILE, environ, directory, profile)


def _check_profile(profile: str | None) -> None:
    if profile and profile not in PROFILES:
        raise UsageError(f"--profile {profile!r}: it is production or development")


def _load(
    text: str,
    file: str,
    environ: Mapping[str, str],
    directory: str,
    profile: str | None,
    *,
    read: Callable[[Path], str] | None = None,
) -> Loaded:
    settings = load_settings(
        text,
        file=file,
        env=environ,
        read_text=lambda name: (read or _read)(Path(directory, name)),
        channels=installed_channels,
    )
    if settings.store != "sqlite":
        # With SQLite instead, each replica would have its own limits and approvals.
        message = "a store that several gates share is not there yet; use sqlite"
        raise ConfigError([Problem("store", message, "" if file == TEXT_FILE else file)])
    if profile:
        settings = replace(settings, profile=profile)
    secrets = secret_values(settings, environ)
    policy = build_policy(settings, starter=file == STARTER_FILE, secrets=secrets)
    around = absolute_path(directory)
    texts = {str(Path(around, source.file)): source.text for source in settings.cedar}
    return Loaded(settings, policy, None, texts=texts)


def find_config(flag: str | None, environ: Mapping[str, str], cwd: str) -> str | None:
    """Return the config file to use, or None if there is none.

    Raises:
        ConfigError: a flag or variable names a file that does not exist.
    """
    for candidate in candidate_paths(flag, environ, cwd, _config_directory(environ)):
        if os.path.lexists(candidate.path):
            return candidate.path
        if candidate.required_by:
            named = (
                "" if candidate.required_by == "-c" else f"named by {candidate.required_by}, but "
            )
            message = f"{named}there is no such file; 'thoughtgate init' writes one"
            raise ConfigError([Problem("", message, candidate.path)])
    return None


def load_document(path: str | None) -> Document:
    """Return the parsed data and line numbers of a config file, or of the starter policy.

    Raises:
        ConfigError: the file cannot be read or parsed.
    """
    if path is None:
        return parse(STARTER_TEXT, file=STARTER_FILE)
    return parse(_read_config(path)[0], file=path)


def absolute_path(path: str | Path) -> str:
    """Return a path that names the same file in every directory; symlinks stay as they are."""
    return os.path.normpath(Path(path).absolute())


def secret_values(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Return the values of all secrets that the settings name or contain, for masking."""
    names = secret_names(settings)
    named = [environ[name] for name in sorted(names) if environ.get(name)]
    return [
        *named,
        *(value for server in settings.servers.values() for value in _handed_over(server)),
    ]


def _handed_over(server: ServerSettings) -> Iterator[str]:
    """Yield the secrets in a server's environment and headers, recognised by their names."""
    for name, value in (*server.env.items(), *server.headers.items()):
        if _REDACTOR.is_secret_name(name) or name.upper().endswith(_SECRET_ENDINGS):
            # "Bearer abc" is a secret as a whole, and so is its last word.
            yield from {value, *value.split()[-1:]}


def _config_directory(environ: Mapping[str, str]) -> str:
    if configured := environ.get("XDG_CONFIG_HOME"):
        return configured
    return str(Path(environ.get("HOME") or Path.home()) / ".config")


def _read_config(path: str) -> tuple[str, list[str]]:
    """Read the file; return its text and warnings about it."""
    try:
        status = Path(path).lstat()
        if stat.S_ISLNK(status.st_mode):
            if not str(Path(path).readlink()).startswith(_MOUNTED):
                raise ConfigError([Problem("", "is a symlink; name the file itself", path)])
            status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError([Problem("", "is not a regular file", path)])
        text = _read(Path(path))
    except OSError as error:
        raise ConfigError([Problem("", f"cannot be read: {error.strerror}", path)]) from None
    except UnicodeError:
        raise ConfigError([Problem("", "is not UTF-8 text", path)]) from None
    warnings = []
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        warnings.append(f"{path} can be written by others; mend it with: chmod go-w {path}")
    if status.st_mode & (stat.S_IRGRP | stat.S_IROTH) and _holds_secret(
        parse(text, file=path).data
    ):
        warnings.append(
            f"{path} holds a secret and can be read by others; mend it with: chmod 600 {path}"
        )
    return text, warnings


def _holds_secret(value: Any, name: str = "") -> bool:
    """Tell whether a value in the file itself, not taken from the environment, is a secret."""
    if isinstance(value, dict):
        return any(_holds_secret(member, str(key)) for key, member in value.items())
    if isinstance(value, list):
        return any(_holds_secret(member, name) for member in value)
    if not isinstance(value, str) or "${" in value:
        return False
    return bool(value) and _REDACTOR.mask_value({name: value}) != {name: value}


def _read(path: Path) -> str:
    # A pipe could block, and a truncated policy must not be taken for a complete one.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_BYTES} bytes", str(path))
    return data.decode("utf-8-sig")
