"""``thoughtgate policy``: explain, lint, test, learn, compare, replay and accept policies."""

from thoughtgate.cli.options import command_app, examples
from thoughtgate.cli.policy.accept import ACCEPT_EXAMPLES, accept_command
from thoughtgate.cli.policy.diff import DIFF_EXAMPLES, diff_command
from thoughtgate.cli.policy.expectations import TEST_EXAMPLES, expectations_command
from thoughtgate.cli.policy.explain import EXPLAIN_EXAMPLES, explain_command
from thoughtgate.cli.policy.learn import LEARN_EXAMPLES, learn_command
from thoughtgate.cli.policy.lint import LINT_EXAMPLES, lint_command
from thoughtgate.cli.policy.replay import REPLAY_EXAMPLES, replay_command

app = command_app(
    "Explain, lint, test, learn, compare, replay and accept policies.",
    examples(
        "thoughtgate policy explain --server github --tool delete_repo",
        "thoughtgate policy lint -c thoughtgate.yaml",
        "thoughtgate policy replay --since 7d -c candidate.yaml",
    ),
)


app.command("explain", epilog=EXPLAIN_EXAMPLES)(explain_command)
app.command("lint", epilog=LINT_EXAMPLES)(lint_command)
app.command("test", epilog=TEST_EXAMPLES)(expectations_command)
app.command("replay", epilog=REPLAY_EXAMPLES)(replay_command)
app.command("learn", epilog=LEARN_EXAMPLES)(learn_command)
app.command("diff", epilog=DIFF_EXAMPLES)(diff_command)
app.command("accept", epilog=ACCEPT_EXAMPLES)(accept_command)
