"""What has become of earlier findings: by where their lines stand, through histories made with git."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.service.finding_lifecycle import FindingState
from tests.service.reviewed_branch import DEFECT, Branch, text, tree
from tests.thoroughly import tries

PLAIN = [f"plain line number {number}" for number in range(1, 31)]
BAD = "total = count(entries) - 1  # defect-a"
WITH = [*PLAIN[:10], BAD, *PLAIN[10:]]


def begun(folder: Path, **files: list[str]) -> Branch:
    return Branch(folder, tree(a=PLAIN), tree(**(files or {"a": WITH})))


async def test_the_first_review_says_it_and_the_next_says_nothing_about_the_same_line(tmp_path: Path) -> None:
    branch = begun(tmp_path)
    assert await branch.reviewed() == [BAD]
    branch.feature = tree(a=[*WITH, "more"])
    assert await branch.reviewed() == []
    assert branch.states() == [FindingState.STILL]


@pytest.mark.parametrize(
    ("feature", "state"),
    [
        (tree(a=["new", *WITH]), FindingState.MOVED),
        (tree(b=["new", *WITH]), FindingState.MOVED),
        (tree(a=PLAIN, b=[BAD, "more", "and more"]), FindingState.MOVED),
        (tree(a=PLAIN), FindingState.FIXED),
        (tree(a=[*PLAIN[:10], "total = count(entries)", *PLAIN[10:]]), FindingState.FIXED),
    ],
)
async def test_after_a_push_each_is_where_its_line_is(
    feature: dict[str, str], state: FindingState, tmp_path: Path
) -> None:
    branch = begun(tmp_path)
    await branch.reviewed()
    branch.feature = feature
    assert await branch.reviewed() == []
    assert branch.states() == [state]
    assert [thread.resolved for thread in branch.threads] == [state is FindingState.FIXED]


async def test_once_the_target_branch_has_the_line_it_is_outside_and_its_thread_stays(tmp_path: Path) -> None:
    branch = begun(tmp_path)
    await branch.reviewed()
    branch.target, branch.feature = tree(a=WITH), tree(a=[*WITH, "more"])
    await branch.reviewed()
    assert branch.states() == [FindingState.OUTSIDE]
    assert not branch.threads[0].resolved


async def test_what_was_mended_and_comes_back_is_opened_again_and_not_said_anew(tmp_path: Path) -> None:
    branch = begun(tmp_path)
    await branch.reviewed()
    branch.feature = tree(a=[*PLAIN, "repaired"])
    await branch.reviewed()
    assert branch.threads[0].resolved
    branch.feature = tree(a=WITH)
    assert await branch.reviewed() == []
    assert branch.states() == [FindingState.BACK]
    assert not branch.threads[0].resolved


async def test_what_a_person_resolved_is_dismissed_wherever_it_goes(tmp_path: Path) -> None:
    branch = begun(tmp_path)
    await branch.reviewed()
    branch.dismiss(branch.threads[0])
    branch.feature = tree(b=["new", *WITH])
    assert await branch.reviewed() == []
    assert branch.states() == [FindingState.DISMISSED]


@pytest.mark.parametrize(
    ("feature", "state"),
    [
        (tree(a=["new", *WITH]), FindingState.MOVED),
        (tree(b=["new", *WITH]), FindingState.MOVED),
        (tree(a=PLAIN, b=[BAD, "x", BAD]), FindingState.UNKNOWN),
        (tree(a=[*PLAIN, "more"]), FindingState.UNKNOWN),
    ],
)
async def test_if_nobody_keeps_its_commit_it_is_known_by_its_text_in_one_place_or_not_at_all(
    feature: dict[str, str], state: FindingState, tmp_path: Path
) -> None:
    branch = begun(tmp_path)
    await branch.reviewed()
    branch.forgotten.add(branch.head)
    branch.feature = feature
    await branch.reviewed()
    assert branch.states()[0] == state
    assert not branch.threads[0].resolved


async def test_what_was_mended_stays_so_when_nobody_keeps_its_commit_any_more(tmp_path: Path) -> None:
    branch = begun(tmp_path)
    await branch.reviewed()
    first = branch.head
    branch.feature = tree(a=[*PLAIN, "repaired"])
    await branch.reviewed()
    assert branch.threads[0].resolved
    branch.forgotten.add(first)
    branch.feature = tree(a=[*PLAIN, "repaired", "more"])
    await branch.reviewed()
    assert branch.threads[0].resolved, "nobody sees it any more: that is no sign that it is back"


PLACES = st.integers(0, 60)
STEPS = st.one_of(
    st.tuples(st.just("insert"), PLACES, st.integers(1, 4)),
    st.tuples(st.just("delete"), PLACES, st.integers(1, 4)),
    st.tuples(st.just("target"), PLACES, st.integers(1, 3)),
    st.tuples(st.just("block"), PLACES, PLACES),
    st.tuples(st.just("rename"), PLACES, PLACES),
    st.tuples(st.just("fix"), PLACES, PLACES),
    st.tuples(st.just("worsen"), PLACES, PLACES),
    st.tuples(st.just("dismiss"), PLACES, PLACES),
    st.tuples(st.just("trace"), PLACES, PLACES),
)


class History:
    """Two trees as lists of lines, changed step by step. Every line's text stands once; so a defect is its text."""

    def __init__(self, folder: Path) -> None:
        self.target = {name: [f"{name} has the plain line {at}" for at in range(18)] for name in ("one", "two")}
        self.feature = {name: list(lines) for name, lines in self.target.items()}
        self.made = 0
        for name in self.feature:
            self._insert(self.feature[name], 6, 2, defect=True)
        self.branch = Branch(folder, {}, {})
        self.dismissed: set[str] = set()
        self.about: dict[str, str] = {}  # which defect each thread is about

    def _insert(self, lines: list[str], at: int, count: int, *, defect: bool = False) -> None:
        for _ in range(count):
            self.made += 1
            word = f"{DEFECT}-{self.made}" if defect else f"harmless-{self.made}"
            lines.insert(at % (len(lines) + 1), f"value_{self.made} = compute({self.made})  # {word}")

    def step(self, kind: str, one: int, other: int) -> None:
        name = sorted(self.feature)[one % len(self.feature)]
        lines = self.feature[name]
        if kind in ("insert", "worsen"):
            self._insert(lines, one, other % 4 + 1, defect=kind == "worsen")
        elif kind in ("delete", "fix"):
            del lines[one % len(lines) : one % len(lines) + (1 if kind == "fix" else other)]
            lines.extend([] if lines else [f"the rest of {name}"])
        elif kind == "target":
            self._rebased(other)
        elif kind == "block":
            self._moved(lines, one, other)
        elif kind == "rename":
            self.made += 1
            self.feature[f"renamed_{self.made}"] = self.feature.pop(name)
        elif kind == "trace":
            self.branch.traced()
        elif self.branch.threads:
            self._dismissed(one)

    def _rebased(self, count: int) -> None:
        """The same lines in both, where the file still has its name."""
        for name in sorted(self.target):
            fresh: list[str] = []
            self._insert(fresh, 0, count)
            self.target[name][:0] = fresh
            if name in self.feature:
                self.feature[name][:0] = fresh

    def _moved(self, lines: list[str], at: int, to: int) -> None:
        block = [lines.pop(at % len(lines)) for _ in range(min(5, len(lines) - 1)) if len(lines) > at % len(lines)]
        names = sorted(self.feature)
        there = self.feature[names[to % len(names)]]
        there[to % (len(there) + 1) : to % (len(there) + 1)] = block

    def _dismissed(self, at: int) -> None:
        open_ones = [thread for thread in self.branch.threads if not thread.resolved]
        if open_ones:
            thread = open_ones[at % len(open_ones)]
            self.branch.dismiss(thread)
            self.dismissed.add(self.about[thread.id])

    async def reviewed(self) -> None:
        branch = self.branch
        branch.target = {f"{name}.py": text(lines) for name, lines in self.target.items()}
        branch.feature = {f"{name}.py": text(lines) for name, lines in self.feature.items()}
        before = {thread.id for thread in branch.threads}
        said = await branch.reviewed()
        fresh = [thread.id for thread in branch.threads if thread.id not in before]
        self.about |= dict(zip(fresh, said, strict=True))

    def check(self, shown: set[str]) -> None:
        standing = [self.about[thread.id] for thread in self.branch.threads if not thread.resolved_by_bot]
        present = {line for lines in self.feature.values() for line in lines}
        for defect in shown:
            assert standing.count(defect) == 1, "lost, or said twice"
        assert not {one for one in standing if standing.count(one) > 1} & present
        for defect in self.dismissed & present:
            threads = [thread for thread in self.branch.threads if self.about[thread.id] == defect]
            assert len(threads) == 1, "a dismissed one came back"
            assert threads[0].resolved, "a dismissed one was opened again"


@pytest.mark.thorough
@settings(max_examples=tries(30), deadline=None)
@given(rounds=st.lists(st.lists(STEPS, min_size=1, max_size=4), min_size=1, max_size=5))
async def test_through_any_history_nothing_is_lost_said_twice_or_resurrected(
    rounds: list[list[tuple[str, int, int]]],
) -> None:
    with TemporaryDirectory() as folder:
        history = History(Path(folder))
        await history.reviewed()
        for steps in rounds:
            for step in steps:
                history.step(*step)
            await history.reviewed()
            history.check(await shown_defects(history.branch))


async def shown_defects(branch: Branch) -> set[str]:
    files = await branch.diffs(7)
    added = (line[1:] for file in files for line in file.text.split("\n") if line[:1] in ("+", " "))
    return {line for line in added if f"# {DEFECT}" in line}
