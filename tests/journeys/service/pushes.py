"""A branch of real commits behind the lab's merge request: what git says differs is what GitLab shows and compares."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copytree

from hummingbird.lab.gitlab.records import Commit
from hummingbird.lab.gitlab.repository import parse_diff
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.journeys.service.stage import Stage

_AS = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "core.autocrlf=false")
Change = Callable[[Path], None]


class Pushes:
    """Begins with the case's own change: `main` is before it, `feature` after it."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder = stage, folder
        case = stage.scene.case.folder / "gitlab"
        copytree(case / "tree", folder)
        self._git("init", "-q", "-b", "main")
        self._git("apply", "-R", str((case / "diff.patch").resolve()))
        self._commit("Before")
        self._git("checkout", "-q", "-b", "feature")
        self._git("apply", str((case / "diff.patch").resolve()))
        self._commit("The change")
        head = stage.world.merge_request.sha or ""
        self._heads = {head: self._at("feature")}
        self._bases = {stage.world.merge_request.base_sha or "": self._at("main")}

    def push(self, change: Change) -> str:
        """One more commit on the branch."""
        change(self.folder)
        self._commit("More")
        return self._pushed()

    def rebase(self, change: Change) -> str:
        """Somebody changes the target branch, and the branch is put on top of that."""
        self._git("checkout", "-q", "main")
        change(self.folder)
        self._commit("Elsewhere")
        self._git("checkout", "-q", "feature")
        self._git("rebase", "-q", "main")
        base = self._at("main")
        self.stage.ask(lambda world: _based(world, base, self._since(self._bases, base)))
        self._bases[base] = base
        return self._pushed()

    def squash(self) -> str:
        """The same change in one commit."""
        self._git("reset", "-q", "--soft", "main")
        self._commit("All of it")
        return self._pushed()

    def forget(self, sha: str) -> None:
        """Nobody keeps that commit any more."""
        self.stage.ask(lambda world: world.commits.pop(sha))

    def _pushed(self) -> str:
        head = self._at("feature")
        self.stage.push(head, diff=self._diff("main", head), since=self._since(self._heads, head))
        self._heads[head] = head
        return head

    def _since(self, earlier: Mapping[str, str], to: str) -> dict[str, str]:
        return {known: self._diff(sha, to) for known, sha in earlier.items()}

    def _diff(self, old: str, new: str) -> str:
        return self._git("diff", "-M", old, new)

    def _at(self, name: str) -> str:
        return self._git("rev-parse", name).strip()

    def _commit(self, title: str) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "-m", title)

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", *_AS, *words], cwd=self.folder, capture_output=True, check=True)
        return done.stdout.decode()


def _based(world: GitLabWorld, base: str, since: Mapping[str, str]) -> None:
    request = world.merge_request
    world.commits[base] = Commit(base, "Elsewhere", "Elsewhere", "a", "a@example.org", world.next_timestamp())
    request.base_sha = request.start_sha = base
    world.compared |= {(earlier, base): parse_diff(text) for earlier, text in since.items()}


def edited(path: str, old: str, new: str) -> Change:
    def change(folder: Path) -> None:
        text = (folder / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        (folder / path).write_text(text.replace(old, new), encoding="utf-8")

    return change


def renamed(old: str, new: str) -> Change:
    def change(folder: Path) -> None:
        (folder / new).parent.mkdir(parents=True, exist_ok=True)
        (folder / old).rename(folder / new)

    return change


def both(first: Change, second: Change) -> Change:
    def change(folder: Path) -> None:
        first(folder)
        second(folder)

    return change
