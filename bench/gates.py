"""The gates alone, in process: what a verdict costs by 100 rules, 10,000 rules and Cedar."""

import json
import statistics
import time
from collections.abc import Iterable
from typing import Any, Final

from bench.figure import Figure

from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.policy.call import FORWARD, Call
from thoughtgate.policy.evaluation import evaluate
from thoughtgate.policy.policy import Policy
from thoughtgate.wire.frame import read_frame

FEW: Final = 100
MANY: Final = 10_000
POLICIES: Final = 20

_CALL: Final = Call("sample", "tool", "echo", {"text": "hello", "number": 7})
_NOW: Final = 1_760_000_000.0


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure each policy by the same call, in turns."""
    times = 2_000 if quick else 20_000
    cases = {
        "100 rules": (_policy(_rules(FEW)), 30.0),
        "10,000 rules": (_policy(_rules(MANY)), 60.0),
        "20 Cedar policies evaluated": (_cedar_policy(), 200.0),
    }
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(7):
        for name, (policy, _) in cases.items():
            samples[name].append(_cost(policy, times))
    for name, (_, bar) in cases.items():
        yield Figure(f"verdict by {name}", statistics.median(samples[name]), "µs", bar)
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello","number":7}}}'
    yield Figure("one frame read", _time(lambda: read_frame(line), times), "µs")


def _rules(count: int) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = [
        {"tool": f"tool_{number}_*" if number % 2 else f"tool_{number}", "action": "deny"}
        for number in range(count - 1)
    ]
    return [*rules, {"tool": "echo", "action": "forward"}]


def _policy(rules: list[dict[str, Any]], cedar: str = "") -> Policy:
    config: dict[str, Any] = {"schema": 1, "default": "deny", "rules": rules}
    if cedar:
        config["cedar"] = {"policies": ["bench.cedar"]}
    settings = load_settings(
        json.dumps(config), file="bench.json", env={}, read_text=lambda _: cedar
    )
    return build_policy(settings)


def _cedar_policy() -> Policy:
    policies = [
        f'permit (principal, action, resource == Tool::"sample/tool_{number}")\n'
        f"when {{ context.arguments has number && context.arguments.number < {number} }};"
        for number in range(POLICIES - 1)
    ]
    policies.append('permit (principal, action, resource == Tool::"sample/echo");')
    return _policy([{"tool": "*", "action": "policy"}], "\n".join(policies))


def _cost(policy: Policy, times: int) -> float:
    verdict = evaluate(_CALL, policy, _NOW)
    if verdict.action != FORWARD:
        raise RuntimeError(f"the bench's call must be forwarded: {verdict}")
    return _time(lambda: evaluate(_CALL, policy, _NOW), times)


def _time(act: Any, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        act()
    return (time.perf_counter() - start) / times * 1e6
