"""``thoughtgate policy learn``: propose a strict config based on recorded calls."""

import sys
from pathlib import Path
from typing import Annotated, Final

from typer import Option

from thoughtgate.analysis.learning import observe, propose
from thoughtgate.cli.options import JsonOption, RecordOption, SinceOption, UntilOption, examples
from thoughtgate.cli.output import create_file, write_json
from thoughtgate.cli.policy.replay import recorded_calls
from thoughtgate.errors import UsageError
from thoughtgate.status.policy_trial import starter_policy

LEARN_EXAMPLES: Final = examples(
    "thoughtgate policy learn --since 7d", "thoughtgate policy learn --since 7d -o candidate.yaml"
)


def learn_command(
    *,
    since: SinceOption = "",
    until: UntilOption = "",
    output: Annotated[
        Path | None,
        Option("-o", "--output", metavar="FILE", help="Write the config to this new file."),
    ] = None,
    record: RecordOption = None,
    json_: JsonOption = False,
) -> None:
    """Propose a config that allows the recorded calls and denies all others, for review."""
    seen = observe(recorded_calls(record, since, until), starter_policy())
    if not seen:
        raise UsageError("the record has no calls in that time; choose another --since or --record")
    if json_:
        write_json([one._asdict() for one in seen])
        return
    text = propose(seen, since)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        create_file(output, text)
    except FileExistsError:
        raise UsageError(f"{output} already exists; choose another file") from None
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from None
    sys.stderr.write(
        f"Wrote {output}. Review it, then run: thoughtgate policy replay -c {output}\n"
    )
