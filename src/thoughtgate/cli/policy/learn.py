"""``thoughtgate policy learn``: a tight config proposed from what was observed."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from thoughtgate.analysis.learning import observe, propose
from thoughtgate.cli.audit.source import RecordOption, SinceOption, UntilOption, write_json
from thoughtgate.cli.options import JsonOption, examples
from thoughtgate.cli.policy.replay import recorded_calls
from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.errors import UsageError
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.starter import STARTER_TEXT

LEARN_EXAMPLES: Final = examples(
    "thoughtgate policy learn --since 7d",
    "thoughtgate policy learn --since 7d -o candidate.yaml",
)


def learn_command(
    *,
    since: SinceOption = "",
    until: UntilOption = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to a new file.", show_default=False
        ),
    ] = None,
    record: RecordOption = None,
    json_: JsonOption = False,
) -> None:
    """Propose a config that lets through what was observed and denies the rest, to be reviewed."""
    seen = observe(recorded_calls(record, since, until), _cautious())
    if not seen:
        raise UsageError("no calls are on record for that time; nothing can be learned")
    if json_:
        write_json([one._asdict() for one in seen])
        return
    text = propose(seen, since)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(f"{output} is there already; name another file") from None
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    sys.stderr.write(f"Wrote {output}. Review it, then: thoughtgate policy replay -c {output}\n")


def _cautious() -> Policy:
    """Return the starter policy: it knows which names say that a tool changes things."""
    settings = load_settings(STARTER_TEXT, file="starter", env={}, read_text=lambda _: "")
    return build_policy(settings, starter=True)
