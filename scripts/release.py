"""Prepare a release and print its notes. Needs the standard library only, so that CI can run it before any set-up.

    python3 scripts/release.py version          print the version
    python3 scripts/release.py prepare 0.2.0    write the version everywhere and date the changelog
    python3 scripts/release.py notes v0.2.0     print what the changelog says about a tag

The version lives in src/hummingbird/__init__.py. Manifests and one page name the images of the same release; `prepare`
keeps them in step.
"""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = "src/hummingbird/__init__.py"
CHANGELOG = "CHANGELOG.md"
FILES_WITH_IMAGE_TAGS = (
    "deploy/kubernetes/base/agent.yaml",
    "deploy/kubernetes/base/pool.yaml",
    "deploy/kubernetes/overlays/example/kustomization.yaml",
    "docs/deploying.md",
)
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_ASSIGNMENT = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)


def read_version(root: Path = ROOT) -> str:
    """Return the version that the package states."""
    found = _ASSIGNMENT.search((root / VERSION_FILE).read_text(encoding="utf-8"))
    if not found:
        sys.exit(f"{VERSION_FILE} assigns no __version__.")
    return found[1]


def read_notes(tag: str, root: Path = ROOT) -> str:
    """Return the changelog's section for a tag; exit if the tag, the version and the changelog disagree."""
    version = read_version(root)
    if tag != f"v{version}":
        sys.exit(f"The tag is {tag}, but {VERSION_FILE} says {version}: the tag has to be v{version}.")
    for heading, text in _sections(root).items():
        if re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", heading):
            return text.strip() + "\n"
    sys.exit(f"{CHANGELOG} has no section '## {version} - YYYY-MM-DD': run `scripts/release.py prepare` first.")


def prepare(version: str, date: str, root: Path = ROOT) -> None:
    """Write the new version everywhere and turn the unreleased changes into its dated section."""
    old = read_version(root)
    if not _VERSION.fullmatch(version):
        sys.exit(f"{version} is no version: write three numbers, as in 0.2.0.")
    if not _sections(root).get("Unreleased", "").strip():
        sys.exit(f"{CHANGELOG} lists nothing under '## Unreleased': there is nothing to release.")
    tag = re.compile(rf"(?<![\d.]){re.escape(old)}(?![\d.])")
    for name in (VERSION_FILE, *FILES_WITH_IMAGE_TAGS):
        path = root / name
        path.write_text(tag.sub(version, path.read_text(encoding="utf-8")), encoding="utf-8")
    changelog = root / CHANGELOG
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(
        text.replace("## Unreleased\n", f"## Unreleased\n\n## {version} - {date}\n", 1), encoding="utf-8"
    )


def _sections(root: Path) -> dict[str, str]:
    return dict(_SECTION.findall((root / CHANGELOG).read_text(encoding="utf-8")))


def main(arguments: list[str]) -> None:
    match arguments:
        case ["version"]:
            sys.stdout.write(read_version() + "\n")
        case ["notes", tag]:
            sys.stdout.write(read_notes(tag))
        case ["prepare", version]:
            prepare(version, f"{datetime.now(UTC):%Y-%m-%d}")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
