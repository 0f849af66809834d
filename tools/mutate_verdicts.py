"""Mutation test of the verdicts: change one line that matters and see whether a test fails.

Each mutation is applied by itself to a copy of the tree, and its tests run there. A mutation
that no test notices is printed as NOT CAUGHT, and the exit code is 1: add a test, then run
this again. ``--only TEXT`` runs the mutations whose file or line contains a text.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = Path("src/thoughtgate")
COPIED: Final = ("src", "tests", "tools")
TIMEOUT_S: Final = 180
"""For the tests of one mutation, on a busy machine; a mutation that hangs them is caught."""

PASSED, FAILED, INTERRUPTED, INTERNAL, USAGE, NOTHING = range(6)
"""Exit codes of pytest. An import that fails while tests are collected gives INTERRUPTED."""


class Mutation(NamedTuple):
    """One changed line."""

    file: str
    """Below ``src/thoughtgate``."""
    line: str
    """The line without its indentation; the file has it exactly once."""
    replacement: str
    tests: tuple[str, ...]
    """The smallest set of test files that must catch it."""


_POLICY: Final = ("tests/policy/test_policy.py",)
_VISIBILITY: Final = ("tests/policy/test_visibility.py",)
_RULES: Final = ("tests/policy/test_rules.py",)
_CONDITIONS: Final = ("tests/policy/test_conditions.py",)
_LIMITS: Final = ("tests/policy/test_limits.py",)
_JUDGE: Final = ("tests/core/test_judge.py",)
_SESSION: Final = ("tests/core/test_session.py", "tests/core/test_session_ends.py")
_APPROVAL: Final = ("tests/core/test_approval.py",)
_GOVERNOR: Final = ("tests/gate/test_governor.py",)
_AUTHORITY: Final = ("tests/gate/test_local_authority.py",)
_OUTBOX: Final = ("tests/gate/test_outbox.py",)
_ENDPOINT: Final = ("tests/front/test_endpoint.py",)

MUTATIONS: Final = (
    Mutation(
        "policy/policy.py",
        "if policy.visibility.allows(call.server, call.name, spelled=call.spelled):",
        "if not policy.visibility.allows(call.server, call.name, spelled=call.spelled):",
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        'return Verdict(DENY, "visibility", "not_exposed", f"{call.kind} is not exposed")',
        "return None",
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        'verdict = Verdict(default, "default", kind, "no rule matches", "default")',
        'verdict = Verdict(FORWARD, "default", kind, "no rule matches", "default")',
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        "if verdict.action == APPROVE:",
        "if verdict.action == DENY:",
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        "return None if verdict.action == POLICY else verdict",
        "return verdict",
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        'return Verdict(DENY, "cedar", "policy_denied", "no Cedar policies are configured")',
        'return Verdict(FORWARD, "cedar", "policy_denied", "no Cedar policies are configured")',
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        "if not decision.permitted:",
        "if decision.permitted:",
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        "if decision.workflow is None:",
        "if decision.workflow is not None:",
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        'return Verdict(DENY, "internal", "internal_error", "no gate has a verdict")',
        'return Verdict(FORWARD, "internal", "internal_error", "no gate has a verdict")',
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        "if workflow not in policy.workflows:",
        "if workflow in policy.workflows:",
        _POLICY,
    ),
    Mutation(
        "policy/policy.py",
        'return Verdict(DENY, "internal", "internal_error", reason)',
        "return None",
        _POLICY,
    ),
    Mutation("policy/visibility.py", "if not self.enabled:", "if self.enabled:", _VISIBILITY),
    Mutation(
        "policy/visibility.py",
        "return listed == (self.mode == ALLOW)",
        "return listed != (self.mode == ALLOW)",
        _VISIBILITY,
    ),
    Mutation(
        "policy/visibility.py",
        "return own if own is not None else self.servers.get(ANY_SERVER, _EVERYTHING)",
        "return own if own is not None else _EVERYTHING",
        _VISIBILITY,
    ),
    Mutation(
        "policy/rules.py",
        "return None not in outcomes or self.action != FORWARD",
        "return True",
        _RULES,
    ),
    Mutation(
        "policy/rules.py",
        "if not self.conditions and not self.annotations and not self.facts:",
        "if not self.conditions and not self.facts:",
        _RULES,
    ),
    Mutation(
        "policy/rules.py",
        "rules = (self.rules[number] for number in sorted(numbers))",
        "rules = (self.rules[number] for number in sorted(numbers, reverse=True))",
        _RULES,
    ),
    Mutation(
        "policy/rules.py",
        "return tuple(rule for rule in rules if rule.selector.covers(server, kind, name))",
        "return tuple(rules)",
        _RULES,
    ),
    Mutation(
        "policy/conditions.py",
        "return None if value is MISSING or outcome is None else not outcome",
        "return None if outcome is None else not outcome",
        _CONDITIONS,
    ),
    Mutation(
        "policy/conditions.py",
        '"gt": _ordered(lambda value, operand: value > operand),',
        '"gt": _ordered(lambda value, operand: value >= operand),',
        _CONDITIONS,
    ),
    Mutation(
        "policy/conditions.py",
        "return _compared(compare, value, operand) if _is_number(value) else None",
        "return _compared(compare, value, operand) if _is_number(value) else False",
        _CONDITIONS,
    ),
    Mutation(
        "policy/conditions.py",
        'return path == folder or path.startswith(f"{folder}/")',
        "return path.startswith(folder)",
        _CONDITIONS,
    ),
    Mutation("policy/limits.py", "if spent < limit.budget:", "if spent <= limit.budget:", _LIMITS),
    Mutation("policy/limits.py", "if tokens >= 1:", "if tokens >= 0:", _LIMITS),
    Mutation(
        "policy/limits.py",
        "if len(circuit.failures) >= breaker.failures:",
        "if len(circuit.failures) > breaker.failures:",
        _LIMITS,
    ),
    Mutation(
        "core/judge.py",
        "if request.must_hold and verdict.action == FORWARD:",
        "if not request.must_hold and verdict.action == FORWARD:",
        _JUDGE,
    ),
    Mutation("core/judge.py", "refused = self._count(calls, request.at)", "refused = None", _JUDGE),
    Mutation(
        "core/judge.py",
        "verdict = self._count(held.calls, at) or verdict",
        "self._count(held.calls, at)",
        ("tests/core/test_judge_shared_limits.py",),
    ),
    Mutation(
        "policy/shared_limits.py",
        "return max(needed, min(wanted, left // SHARE)) if needed <= left else 0",
        "return max(needed, min(wanted, left // SHARE))",
        ("tests/policy/test_shared_limits.py",),
    ),
    Mutation(
        "stores/limits.py",
        'raise _RefusedError(Refused("duplicate", ask.key, ask.limit, max(wait_s, 0.001)))',
        "pass",
        ("tests/stores/test_limits.py",),
    ),
    Mutation(
        "policy/evaluation.py",
        "found = stricter(verdict, other)",
        "found = verdict",
        ("tests/policy/test_evaluation.py",),
    ),
    Mutation(
        "policy/evaluation.py",
        "verdict = stricter(verdict, other)",
        "pass",
        ("tests/policy/test_layers.py",),
    ),
    Mutation(
        "policy/scopes.py",
        "return other if more > 0 else verdict",
        "return verdict if more > 0 else other",
        ("tests/policy/test_scopes.py", "tests/policy/test_layers.py"),
    ),
    Mutation(
        "policy/scopes.py",
        "missing = [scope for scope in scopes if scope not in granted]",
        "missing = []",
        ("tests/policy/test_scopes.py",),
    ),
    Mutation(
        "policy/scopes.py",
        "scopes=_joined(verdict.scopes, other.scopes),",
        "scopes=verdict.scopes,",
        ("tests/policy/test_scopes.py",),
    ),
    Mutation(
        "policy/evaluation.py",
        "chosen = other if prevails else verdict",
        "chosen = verdict",
        ("tests/policy/test_layers.py",),
    ),
    Mutation(
        "core/judge.py",
        "return self._limits.check(call, at) or verdict",
        "return verdict",
        _JUDGE,
    ),
    Mutation(
        "core/judge.py",
        'denied = Verdict(DENY, "approval", kind, decision.reason, held.verdict.rule)',
        'denied = Verdict(FORWARD, "approval", kind, decision.reason, held.verdict.rule)',
        _JUDGE,
    ),
    Mutation("core/judge.py", "if again.action == DENY:", "if again.action == APPROVE:", _JUDGE),
    Mutation(
        "core/judge.py",
        "return call, deny_mixed_workflows(verdict)",
        "return call, verdict",
        _JUDGE,
    ),
    Mutation(
        "core/judge.py",
        "withheld = hidden if enforced else frozenset()",
        "withheld = frozenset()",
        _JUDGE,
    ),
    Mutation(
        "core/judge.py",
        "if self.policy.profile == PRODUCTION or verdict.gate == STOP:",
        "if self.policy.profile != PRODUCTION or verdict.gate == STOP:",
        _JUDGE,
    ),
    Mutation(
        "core/session.py",
        "if verdict.action == FORWARD and asked.message is not None:",
        "if asked.message is not None:",
        _SESSION,
    ),
    Mutation(
        "core/session.py",
        "if verdict.action == APPROVE and not asked.held_since:",
        "if verdict.action == APPROVE and asked.held_since:",
        _SESSION,
    ),
    Mutation(
        "core/session.py",
        "if self.held_calls >= self.setup.max_held:",
        "if self.held_calls > self.setup.max_held:",
        _SESSION,
    ),
    Mutation(
        "core/session.py",
        "return [ToAgent(screened(message, asked.method, hidden, revision), key)]",
        "return [ToAgent(message.raw, key)]",
        _SESSION,
    ),
    Mutation(
        "core/session.py",
        "if ident in table:",
        "if ident not in table:",
        _SESSION,
    ),
    Mutation(
        "core/session.py",
        "if message.method in methods.NEEDS_ID or methods.is_variant(message.method):",
        "if message.method in methods.NEEDS_ID:",
        _SESSION,
    ),
    Mutation(
        "core/session.py",
        "if asked.inspect == INSPECT_BEFORE:",
        "if asked.inspect != INSPECT_BEFORE:",
        _SESSION,
    ),
    Mutation(
        "core/session.py",
        "if event.verdict.action != FORWARD or self._not_askable(ident) is not None:",
        "if self._not_askable(ident) is not None:",
        ("tests/core/test_session_tasks.py",),
    ),
    Mutation(
        "core/approval.py",
        "if channel == AGENT_CHANNEL or by == approval.principal:",
        "if channel == AGENT_CHANNEL:",
        _APPROVAL,
    ),
    Mutation(
        "core/approval.py",
        "if len(counted.votes) < approval.required:",
        "if len(counted.votes) > approval.required:",
        _APPROVAL,
    ),
    Mutation(
        "core/approval.py",
        "if approval.on_timeout != TIMEOUT_APPROVE:",
        "if approval.on_timeout == TIMEOUT_APPROVE:",
        _APPROVAL,
    ),
    Mutation(
        "core/grant.py",
        "return bool(grant.digest) and grant.digest == asked.digest",
        "return True",
        ("tests/core/test_grant.py",),
    ),
    Mutation(
        "core/grant.py",
        "if grant.definition != asked.definition:",
        "if grant.definition and asked.definition and grant.definition != asked.definition:",
        ("tests/core/test_grant.py",),
    ),
    Mutation("core/approval.py", "if call.extra:", "if not call.extra:", _APPROVAL),
    Mutation(
        "gate/governor.py",
        'verdict = Verdict(DENY, "internal", "internal_error", "the judge failed")',
        'verdict = Verdict(FORWARD, "internal", "internal_error", "the judge failed")',
        _GOVERNOR,
    ),
    Mutation("gate/governor.py", "self._queue += ruling.records", "pass", _GOVERNOR),
    Mutation(
        "gate/governor.py",
        "decision = self.approvals.use(call_id) or decision",
        "self.approvals.use(call_id)",
        _GOVERNOR,
    ),
    Mutation(
        "gate/governor.py",
        "if call_id in self._unrecorded:",
        "if call_id not in self._unrecorded:",
        _GOVERNOR,
    ),
    Mutation(
        "gate/governor.py",
        "return self._refuse_unrecorded and self.policy.profile == PRODUCTION",
        "return self._refuse_unrecorded and self.policy.profile != PRODUCTION",
        _GOVERNOR,
    ),
    Mutation("gate/local_authority.py", "bool(driver.resumes),", "False,", _AUTHORITY),
    Mutation("gate/local_authority.py", "return False", "return True", _AUTHORITY),
    Mutation(
        "gate/outbox.py",
        "if not self._write_record():",
        "if self._write_record():",
        _OUTBOX,
    ),
    Mutation("gate/outbox.py", "waiting = self._without_frames(waiting)", "pass", _OUTBOX),
    Mutation(
        "gate/outbox.py",
        'driver.feed(NotSent(frame.key, "service_unavailable", at), sink)',
        "pass",
        _OUTBOX,
    ),
    Mutation(
        "front/endpoint.py",
        "mismatch = self._mismatch(exchange, message) if self._options.enforce else None",
        "mismatch = None if self._options.enforce else self._mismatch(exchange, message)",
        _ENDPOINT,
    ),
    Mutation(
        "front/endpoint.py",
        "if is_modern or facts.is_mirrored:",
        "if is_modern:",
        _ENDPOINT,
    ),
    Mutation(
        "gate/session_driver.py",
        "if not self.header_checks.pop(command.key)():",
        "if self.header_checks.pop(command.key) is None:",
        ("tests/gate/test_session_driver.py",),
    ),
    Mutation(
        "front/endpoint.py",
        "return mirror.check_params(wanted, exchange.headers, arguments, required=required)",
        "return None",
        _ENDPOINT,
    ),
    Mutation(
        "front/authentication.py",
        "if address is None or not any(address in network for network in self._networks):",
        "if address is None:",
        ("tests/front/test_authentication.py",),
    ),
)


class NotApplicableError(Exception):
    """The line of a mutation is not in its file exactly once."""


def mutate(mutation: Mutation, text: str) -> str:
    """Return a file's text with the mutation in it.

    Raises:
        NotApplicableError: the source has changed; the mutation must be written again.
    """
    lines = text.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if line.strip() == mutation.line]
    if len(places) != 1:
        raise NotApplicableError(f"{mutation.file} has {len(places)} lines: {mutation.line}")
    (place,) = places
    lines[place] = lines[place].replace(mutation.line, mutation.replacement)
    return "".join(lines)


def copy_tree(target: Path) -> None:
    """Copy what the tests need."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", target)


def run_tests(tree: Path, tests: tuple[str, ...], timeout_s: float = TIMEOUT_S) -> int | None:
    """Run tests in a tree and return pytest's exit code; None if they did not end in time."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    # Compiled files are compared by time and size, and two mutations may agree in both.
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(TIMEOUT_S)
        return None


def is_caught(mutation: Mutation, tree: Path) -> bool:
    """Apply a mutation to a tree, run its tests, and restore the tree."""
    path = tree / SOURCE / mutation.file
    text = path.read_text("utf-8")
    path.write_text(mutate(mutation, text), "utf-8")
    try:
        code = run_tests(tree, mutation.tests)
    finally:
        path.write_text(text, "utf-8")
    if code not in {PASSED, FAILED, INTERRUPTED, None}:
        raise RuntimeError(f"pytest could not run {' '.join(mutation.tests)}: exit code {code}")
    return code != PASSED


def main(argv: list[str] | None = None) -> int:
    """Run the mutations and return the exit code."""
    parser = argparse.ArgumentParser("mutate_verdicts", description=__doc__)
    parser.add_argument("--only", default="", help="run mutations whose file or line contains this")
    only = parser.parse_args(argv).only
    chosen = [one for one in MUTATIONS if only in one.file or only in one.line]
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree)
        every = tuple(sorted({test for mutation in chosen for test in mutation.tests}))
        if run_tests(tree, every, 10 * TIMEOUT_S) != PASSED:
            print("the tests fail without a mutation; make them pass first", file=sys.stderr)
            return 2
        for mutation in chosen:
            caught = is_caught(mutation, tree)
            survivors += not caught
            print(f"{'caught' if caught else 'NOT CAUGHT':10} {mutation.file}: {mutation.line}")
            if not caught:
                print(f"{'':10} became {mutation.replacement!r}; ran {' '.join(mutation.tests)}")
            sys.stdout.flush()
    print(f"{len(chosen) - survivors} of {len(chosen)} mutations are caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
