"""Packages that provide channels, installed into a folder as pip would, without pip."""

import tomllib
from pathlib import Path

from tests.support.commands import ROOT
from tests.support.doc_blocks import write_files

GUIDE = ROOT / "docs" / "guides" / "custom-channel.md"


def install(folder: Path, package: str, *points: str) -> Path:
    """Write the metadata of a package with these entry points; return its folder."""
    metadata = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = ["[thoughtgate.channels]", *points]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def install_from_guide(folder: Path) -> Path:
    """Write the files of the guide, and install the package that they make; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_files(GUIDE, folder)
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"]["thoughtgate.channels"]
    return install(folder, project["name"], *(f"{name} = {at}" for name, at in points.items()))
