"""Programs that start another program, such as ``env``, ``npx`` or ``sudo``, before an agent's name.

``find_launch`` skips them and returns where the agent's own words begin, with the environment and
the directory that the agent will get. A launcher that starts the agent in a container or as another
user is refused, because the agent then reads other config files. Reads no file.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Final

from thoughtgate.errors import UsageError

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?\d+")

_MAX_LAUNCHERS: Final = 16
"""How many launchers in a row are skipped; nobody chains more."""


@dataclass(frozen=True, slots=True)
class Launch:
    """An agent's own command line, and what the launchers before it change."""

    argv: tuple[str, ...]
    """The words from the agent's name on, or from the package or script that stands for it."""
    start: int = 0
    """How many words come before it in the whole command line."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment that the agent gets."""
    cwd: Path = Path()
    clears: bool = False
    """Whether a launcher may drop variables that are set for the agent."""
    package: str = ""
    """The package that contains the agent, if a launcher fetches one."""


@dataclass(frozen=True, slots=True)
class _Options:
    """How to skip the options of one launcher."""

    valued: frozenset[str] = frozenset()
    """The options that take a value, as the next word or directly after the letter."""
    subcommand: tuple[str, ...] = ()
    """The words that must follow for it to start a program, such as ``tool run`` of ``uv``."""
    operands: int = 0
    """How many words come before the program, such as the duration of ``timeout``."""
    packages: tuple[str, ...] = ()
    """The options whose value is a package, which the launcher fetches."""
    runs_package: bool = False
    """Whether the program is the name of a package, unless an option named one."""
    numbers: bool = False
    """Whether a number such as ``-10`` is an option by itself, as for ``nice``."""


_NPX: Final = _Options(
    frozenset({"-p", "--package", "-c", "--call", "-w", "--workspace", "--prefix", "--cache"}),
    packages=("-p", "--package"),
    runs_package=True,
)
_UVX: Final = _Options(
    frozenset(
        {"--from", "--with", "-w", "--with-editable", "--with-requirements", "--python", "-p",
         "--index", "--default-index", "--directory", "--project", "--env-file", "--cache-dir"}
    ),
    packages=("--from",),
    runs_package=True,
)  # fmt: skip
_NODE: Final = _Options(
    frozenset({"-r", "--require", "--import", "--loader", "--env-file", "-C", "--conditions"})
)

_SIMPLE: Final[dict[str, tuple[_Options, ...]]] = {
    "nice": (_Options(frozenset({"-n", "--adjustment"}), numbers=True),),
    "ionice": (_Options(frozenset({"-c", "--class", "-n", "--classdata"})),),
    "time": (_Options(frozenset({"-f", "--format", "-o", "--output"})),),
    "nohup": (_Options(),),
    "setsid": (_Options(),),
    "caffeinate": (_Options(frozenset({"-t", "-w"})),),
    "stdbuf": (_Options(frozenset({"-i", "--input", "-o", "--output", "-e", "--error"})),),
    "timeout": (_Options(frozenset({"-k", "--kill-after", "-s", "--signal"}), operands=1),),
    "command": (_Options(),),
    "exec": (_Options(frozenset({"-a"})),),
    "npx": (_NPX,),
    "bunx": (_NPX,),
    "npm": (replace(_NPX, subcommand=("exec",)), replace(_NPX, subcommand=("x",))),
    "pnpm": (replace(_NPX, subcommand=("dlx",)), replace(_NPX, subcommand=("exec",))),
    "yarn": (replace(_NPX, subcommand=("dlx",)), replace(_NPX, subcommand=("exec",))),
    "uvx": (_UVX,),
    "uv": (replace(_UVX, subcommand=("tool", "run")), replace(_UVX, subcommand=("run",))),
    "pipx": (
        _Options(
            frozenset({"--spec", "--python", "--index-url", "--pip-args"}),
            ("run",),
            packages=("--spec",),
            runs_package=True,
        ),
    ),
    "node": (_NODE,),
    "nodejs": (_NODE,),
    "bun": (replace(_NPX, subcommand=("x",)), replace(_NODE, subcommand=("run",)), _NODE),
    "deno": (replace(_NODE, subcommand=("run",)),),
}
"""The launchers that start the agent on this machine as this user, with the forms of their commands."""

_CONTAINERS: Final = {
    "docker": ("run", "exec", "compose", "container"),
    "podman": ("run", "exec", "compose", "container"),
    "nerdctl": ("run", "exec", "compose"),
    "kubectl": ("exec", "run"),
    "flatpak": ("run",),
    "distrobox": ("enter",),
    "toolbox": ("run", "enter"),
    "devcontainer": ("exec",),
    "distrobox-enter": (),
    "bwrap": (),
    "firejail": (),
    "ssh": (),
    "wsl": (),
}
"""Programs that start an agent elsewhere, with the subcommands that do; without any, all uses do."""

_SUDO_VALUED: Final = frozenset(
    {"-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "--close-from",
     "-D", "--chdir", "-r", "--role", "-t", "--type", "-T", "--command-timeout", "-U"}
)  # fmt: skip


def program_name(word: str) -> str:
    """Return the name of a program without its directory and its Windows suffix."""
    name = PurePath(word.replace("\\", "/")).name
    return name.removesuffix(".exe").removesuffix(".cmd")


def find_launch(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, *, user: str = ""
) -> Launch:
    """Skip the launchers at the beginning of a command line.

    Args:
        argv: the whole command line.
        env: the environment in which it will run.
        cwd: the directory in which it will run.
        user: the name of the user who runs it.

    Raises:
        UsageError: a launcher moves the agent to a container or to another user, or its options
            cannot be understood.
    """
    launch = Launch(tuple(argv), 0, dict(env), cwd)
    for _ in range(_MAX_LAUNCHERS):
        if not launch.argv:
            return launch
        name = program_name(launch.argv[0])
        # At each level: a launcher such as `env` can start a container as well.
        _refuse_container(name, launch.argv)
        skip = _SPECIAL.get(name)
        if skip is not None:
            following = skip(launch, user)
        else:
            following = _skip_simple(launch, _SIMPLE.get(name, ()))
        if following is None:
            return launch
        launch = following
    return launch


def _refuse_container(name: str, argv: Sequence[str]) -> None:
    """Refuse a program that starts the agent in another place.

    Raises:
        UsageError: it is one.
    """
    words = _CONTAINERS.get(name)
    if words is None or (words and not any(word in words for word in argv[1:])):
        return
    raise UsageError(
        f"{name!r} starts the agent where its config files and the gate cannot be reached from "
        f"here; install ThoughtGate there and run 'thoughtgate wrap' as the command of {name!r}"
    )


def _advance(launch: Launch, count: int, **changes: object) -> Launch | None:
    """Return a launch without its first words; None if nothing would be left to start."""
    if count >= len(launch.argv):
        return None
    return replace(launch, argv=launch.argv[count:], start=launch.start + count, **changes)  # type: ignore[arg-type]  # the fields of Launch


def _options(
    argv: Sequence[str], at: int, valued: frozenset[str], *, numbers: bool = False
) -> tuple[list[tuple[str, str]], int]:
    """Return the options from an index on, each with its value, and the index behind them."""
    found: list[tuple[str, str]] = []
    while at < len(argv):
        word = argv[at]
        if word == "--":
            return found, at + 1
        if not word.startswith("-") or word == "-":
            break
        at += 1
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            is_option = word[:2] in valued and not (numbers and _NUMBER.fullmatch(word))
            # The value may follow the letter without a space.
            name, equals, value = (word[:2], word[2:], word[2:]) if is_option else (word, "", "")
        if name in valued and not equals and at < len(argv):
            value, at = argv[at], at + 1
        found.append((name, value))
    return found, at


def _skip_simple(launch: Launch, forms: Sequence[_Options]) -> Launch | None:
    for form in forms:
        begin = 1 + len(form.subcommand)
        if tuple(launch.argv[1:begin]) != form.subcommand:
            continue
        options, at = _options(launch.argv, begin, form.valued, numbers=form.numbers)
        package = next((value for name, value in options if name in form.packages), "")
        following = _advance(launch, at + form.operands)
        if following is not None and form.runs_package:
            return replace(following, package=package or following.argv[0])
        return following
    return None


def _skip_env(launch: Launch, user: str) -> Launch | None:
    """Skip ``env``, and change the environment and the directory as it would."""
    del user
    argv, env, cwd, clears = launch.argv, dict(launch.env), launch.cwd, launch.clears
    valued = frozenset({"-u", "--unset", "-C", "--chdir", "-S", "--split-string", "-P"})
    options, at = _options(argv, 1, valued)
    for name, value in options:
        if name in ("-S", "--split-string"):
            # env splits the string by rules of its own, with escapes and variables.
            raise UsageError("env -S cannot be looked into; write the agent's command as words")
        if name in ("-u", "--unset"):
            env.pop(value, None)
            clears = True
        elif name in ("-C", "--chdir"):
            cwd /= value
        elif name in ("-i", "--ignore-environment"):
            env.clear()
            clears = True
    if argv[at : at + 1] == ("-",):  # the same as -i
        env.clear()
        at, clears = at + 1, True
    return _advance(launch, _assign(argv, at, env), env=env, cwd=cwd, clears=clears)


def _assign(argv: Sequence[str], at: int, env: dict[str, str]) -> int:
    """Set the variables that stand before a program, and return the index of the program."""
    while at < len(argv) and _ASSIGNMENT.match(argv[at]):
        name, _, value = argv[at].partition("=")
        env[name] = value
        at += 1
    return at


def _skip_sudo(launch: Launch, user: str) -> Launch | None:
    """Skip ``sudo`` or ``doas`` if the agent stays with this user."""
    program, target = program_name(launch.argv[0]), "root"
    env, cwd = dict(launch.env), launch.cwd
    options, at = _options(launch.argv, 1, _SUDO_VALUED)
    for name, value in options:
        if name in ("-u", "--user"):
            target = value
        elif name in ("-D", "--chdir"):
            cwd /= value
    if target not in (user, f"#{os.getuid()}"):
        raise UsageError(
            f"{program!r} runs the agent as {target}, whose config files are others than yours; "
            f"let that user run the gate: {program} -u {target} thoughtgate wrap -- AGENT"
        )
    # sudo's own configuration decides which variables it keeps, so it may drop any of them.
    return _advance(launch, _assign(launch.argv, at, env), env=env, cwd=cwd, clears=True)


_SPECIAL: Final[dict[str, Callable[[Launch, str], Launch | None]]] = {
    "env": _skip_env,
    "sudo": _skip_sudo,
    "doas": _skip_sudo,
}
