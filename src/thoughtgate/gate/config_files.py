"""Finds and loads the config files: the user's, a project's and the organisation's."""

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from thoughtgate.config.build import build_policy
from thoughtgate.config.document import Document
from thoughtgate.config.load import cedar_files, load_project_settings, settings_of
from thoughtgate.config.parse import parse
from thoughtgate.config.secrets import secret_names
from thoughtgate.config.settings import ServerSettings, Settings, WorkflowSettings
from thoughtgate.errors import ConfigError, Problem, UsageError
from thoughtgate.gate.approvals.installed_channels import installed_channels
from thoughtgate.gate.policy_files.agent_started import agent_started, find_chosen_values
from thoughtgate.gate.policy_files.checked_files import PolicyFiles, absolute_path
from thoughtgate.gate.policy_files.parsed_documents import ParsedDocuments
from thoughtgate.gate.policy_files.sources import (
    ORGANISATION,
    PROJECT,
    STARTER,
    USER,
    Places,
    PolicySource,
    describe_sources,
    find_places,
)
from thoughtgate.gate.policy_files.trusted_files import is_trusted, list_trusted, place_of
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION
from thoughtgate.policy.layers import with_layers
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.starter import STARTER_TEXT
from thoughtgate.stores.policies import PolicyFile

STARTER_FILE: Final = "built-in starter policy"
TEXT_FILE: Final = "config text"

_NO_CONFIG: Final = (
    "no config file found: the built-in starter policy applies"
    " (thoughtgate init writes it as a file)"
)
_ONLY_PROJECT: Final = (
    "no config file of yours found: the built-in starter policy applies, and {path}, which is not"
    " trusted, can only tighten it (to use that file as your policy, run: thoughtgate trust)"
)

PROFILES: Final = (PRODUCTION, DEVELOPMENT)
PROFILE_VARIABLE: Final = "THOUGHTGATE_PROFILE"

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


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a config was looked for; a reload looks there again."""

    flag: str | None
    cwd: str
    config_home: str = ""
    """The directory of the user's config files, if the environment does not decide it."""
    has_floor: bool = True
    """Whether the organisation's policy applies."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What the organisation's policy says about changes of its own file."""

    workflow: str
    """The workflow of questions about them; empty if it describes none."""
    reload: str
    """Its ``reload``: the user's does not apply to them."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that was read and checked."""

    settings: Settings
    policy: Policy
    path: str | None
    """The file that the settings come from; None for the built-in starter policy and for
    ``load_text``. Further files may tighten the policy: see ``sources``."""
    warnings: tuple[str, ...] = ()
    """Messages for the operator, one line each."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The text of every file that it was read from, by its absolute path."""
    proposed: "Loaded | None" = None
    """What the files say now, if that waits for a person and this config is the one before."""
    sources: tuple[PolicySource, ...] = ()
    """Every policy in force; the first is the one that the settings come from."""
    origin: Origin | None = None
    """Where it was looked for; None for ``load_text``."""
    floor: Floor | None = None
    """What the organisation's policy says about its own changes; None if there is none."""
    agent_started: bool = False
    """Whether an agent starts the gate, and so decides its environment."""

    @property
    def summary(self) -> str:
        """One line that says which policies are in force and why."""
        return f"{describe_sources(self.sources) or TEXT_FILE}, {self.policy.profile}"

    @property
    def files(self) -> list[str]:
        """Every file that was read."""
        return [name for source in self.sources for name in source.files]

    @property
    def own_file(self) -> PolicyFile:
        """The config file and the policy files that it names, with their texts."""
        if self.path is None:
            return PolicyFile.of("", {})
        path = absolute_path(self.path)
        around = Path(path).parent
        names = [path, *(str(around / source.file) for source in self.settings.cedar)]
        return PolicyFile.of(path, {name: self.texts[name] for name in names})

    @property
    def floor_file(self) -> PolicyFile:
        """The organisation's file and the policy files that it names; empty if there is none."""
        for source in self.sources:
            if source.role == ORGANISATION:
                texts = {name: self.texts[name] for name in source.files}
                return PolicyFile.of(source.path, texts)
        return PolicyFile.of("", {})


def load_configuration(
    flag: str | None,
    environ: Mapping[str, str],
    cwd: str,
    *,
    profile: str | None = None,
    config_home: str = "",
    has_floor: bool = True,
    kept: Mapping[str, str] | None = None,
    documents: ParsedDocuments | None = None,
) -> Loaded:
    """Find, read and check the config files; without one, use the starter policy.

    ``profile`` is the one on the command line and takes precedence; ``config_home`` replaces the
    directory of the user's config files that the environment names. Without ``has_floor``, the
    organisation's policy is not used, because another gate in front of it applies it. A text in
    ``kept`` is used instead of what the file of that absolute path says now. ``documents`` may have
    parsed the texts before.

    Raises:
        UsageError: there is no such profile.
        ConfigError: the named file is missing, or a file is unreadable, invalid, or can be written
            by others.
    """
    _check_profile(profile)
    places = find_places(flag, environ, cwd, config_home)
    if not has_floor:
        places = places._replace(organisation="")
    loader = _Loader(environ, cwd, profile, kept, documents)
    main = loader.choose(places)
    if places.organisation and main.role != ORGANISATION:
        loader.read_floor(places.organisation)
    loaded = loader.load_main(main)
    layers, sources = [], [loader.completed(main, loaded.settings)]
    if places.project and main.role != PROJECT:
        layer, source = loader.project_layer(places.project, loaded.settings)
        layers.append(layer)
        sources.append(source)
    if loader.floor is not None:
        layers.append(_floor_layer(loader.floor))
        found = PolicySource(ORGANISATION, places.organisation)
        sources.append(loader.completed(found, loader.floor))
    policy = with_layers(loaded.policy, *layers)
    return replace(
        loaded,
        settings=replace(loaded.settings, profile=policy.profile),
        policy=policy,
        warnings=(*loaded.warnings, *_about_sources(sources)),
        sources=tuple(sources),
        origin=Origin(flag, cwd, config_home, has_floor),
        texts=loader.texts,
        floor=_floor_of(loader.floor, loaded.settings if main.role == ORGANISATION else None),
    )


def load_kept(
    loaded: Loaded,
    texts: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    profile: str | None = None,
) -> Loaded:
    """Load a config from where another one was found, with texts that were kept of its files.

    Raises:
        ConfigError: the texts are no valid config.
    """
    origin = loaded.origin or Origin(loaded.path, str(Path.cwd()))
    return load_configuration(
        origin.flag,
        environ,
        origin.cwd,
        profile=profile,
        config_home=origin.config_home,
        has_floor=origin.has_floor,
        kept=texts,
    )


def load_agent_gate(
    flag: str | None,
    environ: Mapping[str, str],
    cwd: str,
    *,
    profile: str | None = None,
    state_dir: str = "",
    has_floor: bool = True,
) -> tuple[Loaded, dict[str, str]]:
    """Load the config of a gate that an agent starts; also return the environment it goes by.

    Raises:
        UsageError: there is no such profile, or the state directory is not an absolute path.
        ConfigError: as for ``load_configuration``.
        StoreError: the account has no home directory.
    """
    around = agent_started(environ, config=flag or "", state_dir=state_dir)

    def load(documents: ParsedDocuments) -> Loaded:
        loaded = load_configuration(
            flag,
            around.environ,
            cwd,
            profile=profile,
            config_home=around.config_home,
            has_floor=has_floor,
            documents=documents,
        )
        _refuse_chosen_values(loaded, environ, documents)
        return loaded

    documents = ParsedDocuments(state_directory(around.environ))
    try:
        loaded = load(documents)
    except ConfigError:
        if not documents.has_skipped:
            raise
        loaded = load(ParsedDocuments())  # to name the lines of the problems
    warnings = (*around.warnings, *loaded.warnings)
    if profile == DEVELOPMENT == loaded.policy.profile:
        warnings = (*warnings, "--profile development: calls are reported, and none is refused")
    return replace(loaded, warnings=warnings, agent_started=True), around.environ


def _refuse_chosen_values(
    loaded: Loaded, environ: Mapping[str, str], documents: ParsedDocuments
) -> None:
    """Refuse values of a policy that the environment of an agent would decide.

    Raises:
        ConfigError: there are such values.
    """
    chosen = [
        problem
        for source in loaded.sources
        if source.path and source.trusted
        for problem in find_chosen_values(
            loaded.texts[source.path], source.path, environ, documents
        )
    ]
    if chosen:
        raise ConfigError(chosen)


def reload_configuration(loaded: Loaded, environ: Mapping[str, str]) -> Loaded:
    """Load a config again from where it was found, with the same profile.

    Raises:
        ConfigError: a file is gone, unreadable or invalid, or can be written by others.
    """
    origin = loaded.origin or Origin(loaded.path, str(Path.cwd()))
    again = load_configuration(
        origin.flag,
        environ,
        origin.cwd,
        profile=loaded.policy.profile,
        config_home=origin.config_home,
        has_floor=origin.has_floor,
    )
    present = {source.path for source in again.sources}
    # Removing a file must not remove its rules from a gate that runs.
    gone = [source.path for source in loaded.sources if source.path not in present | {""}]
    if gone:
        raise ConfigError([Problem("", "is gone; restart to run without it", one) for one in gone])
    return again


def load_text(
    text: str, environ: Mapping[str, str], directory: str, *, profile: str | None = None
) -> Loaded:
    """Check a config that is not in a file; the files it names are relative to ``directory``.

    Raises:
        UsageError: there is no such profile.
        ConfigError: the text is invalid.
    """
    _check_profile(profile)
    return _Loader(environ, directory, profile).load(
        parse(text, file=TEXT_FILE), TEXT_FILE, directory
    )


def _check_profile(profile: str | None) -> None:
    if profile and profile not in PROFILES:
        raise UsageError(f"--profile {profile!r}: it is production or development")


class _Loader:
    """Reads the config files of one load; each file is read once."""

    def __init__(
        self,
        environ: Mapping[str, str],
        cwd: str,
        profile: str | None = None,
        kept: Mapping[str, str] | None = None,
        documents: ParsedDocuments | None = None,
    ) -> None:
        self.floor: Settings | None = None
        """The organisation's policy, if it is not the only one."""
        self._environ = environ
        self._cwd = cwd
        self._profile = profile
        self._files = PolicyFiles(kept)
        self._documents = documents or ParsedDocuments()

    @property
    def texts(self) -> dict[str, str]:
        """The text of every file that was read, by its absolute path."""
        return self._files.texts

    def choose(self, places: Places) -> PolicySource:
        """Return the policy that the settings come from."""
        if places.named is not None:
            return PolicySource(USER, places.named.path, named_by=places.named.by)
        if places.project:
            state = state_directory(self._environ)
            # The files that an unknown config names are not even read.
            if place_of(places.project) in list_trusted(state):
                digest = _digest(places.project, self._files, self._environ, self._documents)
                if digest and is_trusted(state, places.project, digest):
                    return PolicySource(PROJECT, places.project)
        for role, path in ((USER, places.user), (ORGANISATION, places.organisation)):
            if path:
                return PolicySource(role, path)
        return PolicySource(STARTER)

    def completed(self, source: PolicySource, settings: Settings) -> PolicySource:
        """Add to a source what is known once it is loaded: its files and their digest."""
        if source.role == STARTER:
            return source
        named = [one.file for one in settings.cedar]
        around = Path(source.path).parent
        return replace(
            source,
            digest=self._files.digest(source.path, named),
            files=(source.path, *(str(around / one) for one in named)),
        )

    def load_main(self, main: PolicySource) -> Loaded:
        """Load the policy that the settings come from, with what the organisation adds to them."""
        if main.role == STARTER:
            document = self._documents.parse(STARTER_TEXT, file=STARTER_FILE)
            return self.load(document, STARTER_FILE, self._cwd)
        if main.role == ORGANISATION and PRODUCTION not in {
            self._profile,
            self._environ.get(PROFILE_VARIABLE),
        }:
            # Nothing loosens the organisation's policy, not even when it is the only one.
            self._environ, self._profile = {**self._environ, PROFILE_VARIABLE: ""}, None
        document = self._documents.parse(self._files.config(main.path), file=main.path)
        loaded = self.load(document, main.path, str(Path(main.path).parent))
        return replace(loaded, path=main.path, warnings=_readable_secrets(main.path, document))

    def load(self, document: Document, file: str, directory: str) -> Loaded:
        """Check a config whose files are relative to a directory."""
        settings = self._settings(document, file, directory)
        if self._profile:
            settings = replace(settings, profile=self._profile)
        secrets = secret_values(settings, self._environ)
        if self.floor is not None:
            secrets += secret_values(self.floor, self._environ)
        policy = build_policy(settings, starter=file == STARTER_FILE, secrets=secrets)
        if self.floor is not None:
            settings = _with_floor(settings, self.floor)
        return Loaded(settings, policy, None)

    def read_floor(self, path: str) -> None:
        """Read the organisation's policy; no variable overrides what it says."""
        document = self._documents.parse(self._files.config(path), file=path)
        self.floor = self._settings(document, path, str(Path(path).parent), overrides=False)

    def project_layer(self, path: str, settings: Settings) -> tuple[Layer, PolicySource]:
        """Return what counts of a project's policy that the user has not trusted."""
        document = self._documents.parse(self._files.config(path), file=path)
        project, ignored = load_project_settings(document, file=path)
        workflows = {name: name for name in project.approval if name in settings.approval}
        digest = self._files.digest(path, [])
        source = PolicySource(PROJECT, path, digest, trusted=False, ignored=ignored, files=(path,))
        return Layer(PROJECT, build_policy(project), workflows), source

    def _settings(
        self, document: Document, file: str, directory: str, *, overrides: bool = True
    ) -> Settings:
        return settings_of(
            document,
            file=file,
            env=self._environ,
            read_text=lambda name: self._files.text(str(Path(directory, name))),
            channels=installed_channels,
            overrides=overrides,
        )


def config_digest(path: str, environ: Mapping[str, str]) -> str:
    """Return the digest of a config file and of the files that it names, as trust covers them.

    Empty if a file that it names cannot be read.

    Raises:
        ConfigError: the config cannot be read or parsed, or others can write one of the files.
    """
    return _digest(path, PolicyFiles(), environ, ParsedDocuments())


def _digest(
    path: str, files: PolicyFiles, environ: Mapping[str, str], documents: ParsedDocuments
) -> str:
    named = cedar_files(documents.parse(files.config(path), file=path), env=environ)
    try:
        return files.digest(path, named)
    except (OSError, ValueError):
        return ""


def _with_floor(settings: Settings, floor: Settings) -> Settings:
    """Add the organisation's workflows, and what it demands of the record."""
    workflows = {
        _floor_name(name): replace(one, name=_floor_name(name))
        for name, one in floor.approval.items()
    }
    audit = replace(
        settings.audit,
        on_failure="refuse" if floor.audit.on_failure == "refuse" else settings.audit.on_failure,
        # The organisation's key, if it has one: the user must not be able to sign in its place.
        sign_key_env=floor.audit.sign_key_env or settings.audit.sign_key_env,
    )
    return replace(settings, approval={**settings.approval, **workflows}, audit=audit)


def _floor_layer(floor: Settings) -> Layer:
    workflows = {name: _floor_name(name) for name in floor.approval}
    return Layer(ORGANISATION, build_policy(floor), workflows, prevails=True)


def _floor_of(layer: Settings | None, alone: Settings | None) -> Floor | None:
    """Return what the organisation says about changes: as a layer, or as the only policy."""
    settings = layer or alone
    if settings is None:
        return None
    # The workflow ``default`` comes first, and is there even if the file does not describe it.
    described = [name for name, one in settings.approval.items() if one != WorkflowSettings(name)]
    workflow = described[0] if described else ""
    return Floor(_floor_name(workflow) if layer and workflow else workflow, settings.reload)


def _floor_name(workflow: str) -> str:
    return f"{ORGANISATION}/{workflow}"


def _about_sources(sources: list[PolicySource]) -> Iterator[str]:
    """Yield what the operator should know about the files, or that none was found."""
    if sources[0].role == STARTER:
        project = next((one.path for one in sources if one.role == PROJECT), "")
        yield _ONLY_PROJECT.format(path=project) if project else _NO_CONFIG
    yield from (_ignored_keys(one) for one in sources if one.ignored)


def _ignored_keys(source: PolicySource) -> str:
    return (
        f"{source.path} is not trusted, so it can only tighten the policy; ignored:"
        f" {', '.join(source.ignored)} (to use the whole file, run: thoughtgate trust)"
    )


def find_config(flag: str | None, environ: Mapping[str, str], cwd: str) -> str | None:
    """Return the file that the settings come from, or None if there is none.

    Raises:
        ConfigError: a flag or variable names a file that does not exist, or a file cannot be used.
    """
    return _Loader(environ, cwd).choose(find_places(flag, environ, cwd)).path or None


def load_document(path: str | None) -> Document:
    """Return the parsed data and line numbers of a config file, or of the starter policy.

    Raises:
        ConfigError: the file cannot be read or parsed.
    """
    if path is None:
        return parse(STARTER_TEXT, file=STARTER_FILE)
    return parse(PolicyFiles().config(path), file=path)


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
        if _redactor().is_secret_name(name) or name.upper().endswith(_SECRET_ENDINGS):
            # "Bearer abc" is a secret as a whole, and so is its last word.
            yield from {value, *value.split()[-1:]}


@cache
def _redactor() -> Redactor:
    return Redactor()


def _readable_secrets(path: str, document: Document) -> tuple[str, ...]:
    mode = Path(path).stat().st_mode
    if not mode & (stat.S_IRGRP | stat.S_IROTH) or not _holds_secret(document.data):
        return ()
    return (f"{path} holds a secret and can be read by others; fix it with: chmod 600 {path}",)


def _holds_secret(value: Any, name: str = "") -> bool:
    """Tell whether a value in the file itself, not taken from the environment, is a secret."""
    if isinstance(value, dict):
        return any(_holds_secret(member, str(key)) for key, member in value.items())
    if isinstance(value, list):
        return any(_holds_secret(member, name) for member in value)
    if not isinstance(value, str) or "${" in value:
        return False
    return bool(value) and _redactor().mask_value({name: value}) != {name: value}
