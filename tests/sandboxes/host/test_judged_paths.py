"""What was decided about one file is not done to another."""

from pathlib import Path

import pytest

from hummingbird.core.errors import CommandFailed
from hummingbird.sandboxes.host.workspace import Workspace


def test_a_path_that_became_a_link_between_the_yes_and_the_edit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("one\n")
    workspace = Workspace(tmp_path, judged=True)
    judged = workspace.canonical_path("docs/a.py")
    (tmp_path / "docs/a.py").symlink_to("../src/a.py")
    with pytest.raises(CommandFailed, match=r"now leads to src/a\.py"):
        workspace.edit(judged, None, "two\n")
    with pytest.raises(CommandFailed, match=r"now leads to src/a\.py"):
        workspace.read(judged, 1, None)
    assert (tmp_path / "src/a.py").read_text() == "one\n"


@pytest.mark.parametrize("path", [".", "docs", "docs/b.md", "./docs/../docs/b.md", "docs/caf\u00e9.md"])
def test_what_leads_where_it_was_judged_is_used(tmp_path: Path, path: str) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("b.md", "caf\u00e9.md"):
        (tmp_path / "docs" / name).write_text("text\n")
    workspace = Workspace(tmp_path, judged=True)
    assert workspace.read(workspace.canonical_path(path), 1, None)
