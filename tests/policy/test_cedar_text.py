"""Cedar files: annotations, and where a mistake stands."""

import pytest

from thoughtgate.policy import cedar_text
from thoughtgate.policy.cedar_text import CedarSource, PolicyNote, read_sources

GOOD = "permit(principal, action, resource);"


def read(text: str) -> tuple[dict[str, PolicyNote], list[tuple[int, str]]]:
    notes, problems = read_sources([CedarSource("p.cedar", text)])
    return notes, [(problem.line, problem.message) for problem in problems]


def test_annotations_become_notes() -> None:
    notes, problems = read(f'@id("one") {GOOD}\n@approval("ops") {GOOD}\n@approval {GOOD}')
    assert problems == []
    assert list(notes.values()) == [
        PolicyNote("one", None),
        PolicyNote("p.cedar:policy1", "ops"),
        PolicyNote("p.cedar:policy2", ""),
    ]


def test_more_than_ten_policies_stay_in_order() -> None:
    notes, _ = read("\n".join(f'@id("p{number}") {GOOD}' for number in range(12)))
    assert [note.id for note in notes.values()] == [f"p{number}" for number in range(12)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{GOOD}\n\npermit(principal,\n  action\n  resource);", 5),
        (
            f'// a ; comment\n{GOOD} // permit;\npermit(principal, action, resource == Tool::"a;b") when {{ 1 < }};',
            3,
        ),
        (f"{GOOD}\npermit(principal, action, resource) when {{", 2),
        (f"{GOOD}\n{GOOD}\nnonsense here;", 3),
        (f"{GOOD}\npermit(principal, action, resource) when {{ context.foo(1) }};", 2),
        (f'{GOOD}\npermit(principal, action, resource) when {{ "open }};', 2),
        (f"{GOOD};", 1),
    ],
)
def test_a_mistake_is_found_in_its_line(text: str, line: int) -> None:
    notes, problems = read(text)
    assert notes == {}
    assert [found for found, _ in problems] == [line]


def test_templates_are_refused() -> None:
    _, problems = read(f"{GOOD}\npermit(principal == ?principal, action, resource);")
    assert problems[0][0] == 2
    assert "templates" in problems[0][1]


def test_a_file_without_policies_is_refused() -> None:
    assert "no policy" in read("// nothing\n")[1][0][1]


def test_a_doubled_annotation_is_found() -> None:
    _, problems = read('@id("a") @id("b") ' + GOOD)
    assert problems[0][0] == 1


def test_a_mistake_that_no_single_policy_has_names_the_file() -> None:
    problem = cedar_text._locate(CedarSource("p.cedar", GOOD), "odd")
    assert (problem.file, problem.line, problem.message) == ("p.cedar", 0, "odd")


def test_a_token_that_is_not_in_the_policy_points_to_its_beginning() -> None:
    assert cedar_text._offset(GOOD, "unexpected token `absent`") == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('@approve("ops") permit(principal, action, resource);', "did you mean @approval?"),
        ('@Approval("ops") permit(principal, action, resource);', "did you mean @approval?"),
        ("@aproval permit(principal, action, resource);", "did you mean @approval?"),
        ("@approval forbid(principal, action, resource);", "a forbid asks nobody"),
    ],
)
def test_an_annotation_that_would_ask_nobody_is_a_problem(text: str, told: str) -> None:
    _, problems = read_sources([CedarSource("p.cedar", text)])
    assert [told in one.message for one in problems] == [True]


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 150 + "true" + ")" * 150,
        "[" * 150 + "]" * 150 + " == []",
        '{"a": ' * 150 + "1" + "}" * 150 + " == 1",
        "if true then " * 150 + "true" + " else false" * 150,
        " || ".join(["true"] * 1500),
        "context" + ".a" * 1500,
        "context has " + ".".join("a" * 3002),
    ],
)
def test_a_policy_that_would_exhaust_the_stack_is_refused(condition: str) -> None:
    policy = "permit(principal, action, resource) when { true };\n"
    _, problems = read(policy + policy.replace("true", condition))

    assert problems == [(2, cedar_text.TOO_DEEP)]


def test_a_deep_but_usual_policy_is_read() -> None:
    condition = (
        "(" * 80 + " || ".join(["context.tool like 'x*'".replace("'", '"')] * 200) + ")" * 80
    )
    _, problems = read(f"permit(principal, action, resource) when {{ {condition} }};" * 3)

    assert problems == []
