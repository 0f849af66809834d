"""The workflows: they call what exists, and may do no more than they need."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from ruamel.yaml import YAML
from tools.source_tree import ROOT

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"), key=str)
WRITES: Final = {
    ("release", "image"): {"packages", "id-token", "attestations"},
    ("release", "publish"): {"id-token"},
    ("site", "publish"): {"pages", "id-token"},
    ("release", "announce"): {"contents", "id-token", "attestations"},
}
"""The jobs that may write something, and what."""

CONTAINER_JOB: Final = "image"
"""The only job with rights that uses the repository: its build runs in containers."""


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(ROOT / ".github" / "workflows" / f"{name}.yml")
    return found


def _jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in _read(path.stem)["jobs"].items():
            yield path.stem, name, job


def _steps() -> Iterator[dict[str, Any]]:
    for _, _, job in _jobs():
        yield from job["steps"]


def test_every_target_that_a_workflow_makes_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))

    called = {
        word
        for step in _steps()
        for words in re.findall(r"^make (.*)$", step.get("run", ""), re.MULTILINE)
        for word in words.split()
    }

    assert {"build", "folder-archive", "sbom", "test-long"} <= called
    assert called <= targets


def test_every_file_that_a_workflow_names_exists() -> None:
    for step in _steps():
        if step.get("run", "").startswith(".ci/"):
            assert (ROOT / step["run"]).exists()


@pytest.mark.parametrize("name", [path.stem for path in WORKFLOWS])
def test_a_workflow_may_only_read(name: str) -> None:
    assert _read(name)["permissions"] in ({}, {"contents": "read"})


def test_only_the_jobs_that_publish_may_write() -> None:
    writes = {}
    for workflow, name, job in _jobs():
        rights = job.get("permissions", {})
        assert set(rights.values()) <= {"read", "write"}, name
        if found := {what for what, right in rights.items() if right == "write"}:
            writes[workflow, name] = found

    assert writes == WRITES


@pytest.mark.parametrize(("workflow", "name"), sorted(WRITES))
def test_a_job_that_may_write_needs_consent_and_runs_no_code_of_the_repository(
    workflow: str, name: str
) -> None:
    job = _read(workflow)["jobs"][name]
    uses = [step.get("uses", "") for step in job["steps"]]

    assert job["environment"] == "release"
    assert name == CONTAINER_JOB or not any("checkout" in one for one in uses)
    assert not any("make" in step.get("run", "") for step in job["steps"])


def test_actions_are_pinned_and_keep_no_credentials() -> None:
    for step in _steps():
        if "uses" in step:
            assert re.search(r"@(v\d+\.\d+\.\d+|[0-9a-f]{40})$", step["uses"]), step["uses"]
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": False}


def test_every_job_has_a_time_limit() -> None:
    for workflow, name, job in _jobs():
        assert "timeout-minutes" in job or (workflow, name) == ("ci", "all")


@pytest.mark.requirement("FR30")
def test_a_release_has_packages_folders_an_image_an_sbom_and_provenance() -> None:
    jobs = _read("release")["jobs"]
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")

    assert jobs["folder"]["strategy"]["matrix"]["system"] == [
        "ubuntu-22.04",
        "ubuntu-22.04-arm",
        "macos-14",
    ]
    for action in ("attest-build-provenance", "attest-sbom", "build-push-action"):
        assert f"/{action}@" in text
    assert "secrets." not in text
    assert {"install", "folder"} <= set(jobs["publish"]["needs"])


def test_the_long_tests_run_by_themselves() -> None:
    long = _read("long")

    assert long["on"]["schedule"]
    assert "make test-long" in [step.get("run") for step in long["jobs"]["test-long"]["steps"]]
