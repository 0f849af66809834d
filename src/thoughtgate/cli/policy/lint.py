"""``thoughtgate policy lint``: find mistakes in a policy."""

import sys
from typing import Final

from typer import Exit

from thoughtgate.analysis.lint import ERROR, LintFinding, lint
from thoughtgate.cli.options import ConfigOption, JsonOption, examples, read_config
from thoughtgate.cli.output import counted, write_report
from thoughtgate.errors import EXIT_CONFIG, ConfigError
from thoughtgate.gate.config_files import load_document

LINT_EXAMPLES: Final = examples(
    "thoughtgate policy lint -c thoughtgate.yaml",
    "thoughtgate policy lint -c thoughtgate.yaml --json",
)


def lint_command(*, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """Find rules that never match, unknown servers and workflows, invalid Cedar files.

    The exit code is 1 if there are errors, and 0 if there are only warnings.
    """
    findings = _lint(config)
    report = [{"level": one.level, **one.problem._asdict()} for one in findings]
    write_report(report, (f"{one.level}: {one.problem}" for one in findings), as_json=json_)
    errors = sum(one.level == ERROR for one in findings)
    warnings = counted(len(findings) - errors, "warning")
    sys.stderr.write(f"{counted(errors, 'error')}, {warnings}.\n")
    if errors:
        raise Exit(EXIT_CONFIG)


def _lint(config: str | None) -> list[LintFinding]:
    try:
        loaded = read_config(config)
    except ConfigError as error:
        return [LintFinding(ERROR, problem) for problem in error.problems]
    for warning in loaded.warnings:
        sys.stderr.write(f"Warning: {warning}\n")
    return lint(loaded.settings, load_document(loaded.path), loaded.path or "")
