"""Each source module has its test file at the same place below ``tests``."""

from pathlib import Path

from tools.source_tree import ROOT, SOURCE


def _twin(path: Path) -> Path:
    place = path.relative_to(SOURCE)
    return ROOT / "tests" / place.parent / f"test_{place.name}"


def test_each_source_module_has_its_own_test_file() -> None:
    sources = [path for path in sorted(SOURCE.rglob("*.py")) if not path.stem.startswith("__")]
    missing = [_twin(path) for path in sources if not _twin(path).is_file()]

    assert not missing, "\n".join(str(path.relative_to(ROOT)) for path in missing)
