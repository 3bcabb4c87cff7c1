"""The yardstick of the evidence benchmark: its scorer counts what it says, and every part runs over a tiny folder."""

import json
import lzma
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import run
from benchmarks.evidence import (
    detective,
    engine,
    jobs,
    labels,
    memory,
    pairs,
    quality,
    speed,
    split,
    strategies,
    synthetic,
    unseen,
    verdicts,
)
from benchmarks.evidence.__main__ import NEEDED
from benchmarks.evidence.averages import Judged, averages
from benchmarks.evidence.detective_worker import fitting
from benchmarks.evidence.scoring import Score, score, within

LONG = "error: " + "a very long line " * 20
RED = ["start", *(f"step {n} of the build is done" for n in range(400)), "main.c:3: error: no such file", "make: *** 1"]
GREEN = ["start", *(f"step {n} of the build is done" for n in range(400)), "all is well"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("preview", "expected"),
    [
        ("nothing of it", Score(False, 0.0, False, False)),
        ("first failure\n", Score(True, 0.5, False, False)),
        ("first failure\nin between\nsecond failure", Score(True, 1.0, True, False)),
        ("above\nfirst failure\nsecond failure\nbelow", Score(True, 1.0, True, True)),
    ],
)
def test_hit_recall_full_and_one_piece_are_counted_by_hand(preview: str, expected: Score) -> None:
    lines = ["first failure", "second failure"]
    assert score(lines, ["first failure\n\nsecond failure"], preview) == expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "preview", "there"),
    [
        ("short error", "a short error in a line", False),  # below 24 characters it has to be the whole line
        ("short error", "  short \t error ", True),
        ("an error with more than 24 letters", "12:00 an error with more than 24 letters!", True),
        (LONG.strip(), LONG[:205], True),  # of a long line the first 200 characters are enough
        (LONG.strip(), LONG[:150], False),
        ("red error", "\x1b[31mred error\x1b[0m", True),
        ("red error", "2024-05-06T07:08:09.1234567Z ##[error]red error", True),
        ("red error", "job\tstep\t2024-05-06T07:08:09.1234567Z red error", True),
        ("red error", "4711: red error", True),
        ("red error", " L12| red error", True),
        ("red error", "50%\rred error\r\n", True),
    ],
)
def test_a_label_line_counts_only_where_it_can_be_read(line: str, preview: str, there: bool) -> None:
    assert score([line], [], preview).full is there


@pytest.mark.thorough
def test_what_is_over_the_budget_does_not_count_and_no_character_is_split() -> None:
    assert within("ää", 3) == "ä"
    assert within("ää", 4) == "ää"


@pytest.mark.thorough
def test_a_repository_with_many_logs_weighs_as_much_as_one_with_few() -> None:
    all_of, none_of = Score(True, 1.0, True, True), Score(False, 0.0, False, False)
    judged = [Judged("many", "s", all_of, 0.5, 1_000_000, False) for _ in range(3)]
    mean = averages([*judged, Judged("few", "s", none_of, 0.5, 1_000_000, True)])
    assert (mean.recall, mean.macro, mean.over) == (75.0, 50.0, 1)
    assert mean.ms_per_mb == pytest.approx(500)
    assert mean.spread == pytest.approx(50)  # two repositories: a draw may hold one of them only


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", [*strategies.STRATEGIES.values(), strategies.half_and_half])
@pytest.mark.parametrize("budget", [1, 30, 512, 100_000])
@pytest.mark.parametrize(
    "text", ["", "é" * 3000, "\n".join(RED), "error\n" * 999, "\r\n\r\n", "x" * 40_000 + "\nfailed"]
)
def test_no_strategy_gives_more_than_its_budget(strategy: strategies.Strategy, budget: int, text: str) -> None:
    assert len(strategy(text, budget).encode()) <= budget


@pytest.mark.thorough
def test_each_strategy_shows_what_its_name_says() -> None:
    log = "\n".join([*RED, 'The command "make" exited with 2.', *(f"cleaning up {n}" for n in range(400))])
    budget = 300
    assert strategies.head_and_tail(log, budget).startswith("start\nstep 0 of")
    assert strategies.head_and_tail(log, budget).endswith("cleaning up 399")
    assert strategies.tail(log, budget).endswith("cleaning up 398\ncleaning up 399")
    assert strategies.failing_command(log, budget).endswith('make: *** 1\nThe command "make" exited with 2.')
    assert "main.c:3: error: no such file\nmake: *** 1" in strategies.keywords(log, budget)
    assert "step 300" not in strategies.keywords(log, budget)


@pytest.mark.thorough
def test_marked_lines_are_counted_with_carriage_returns_and_each_once() -> None:
    """Intervals may overlap, and a bar that redraws itself counts as so many lines."""
    assert pairs.marked_lines("1%\r2%\rthe error\r\n\nlast", [(3, 5), (3, 4)]) == ["the error", "last"]


@pytest.mark.thorough
def test_a_repeated_line_counts_by_text_or_once_per_showing() -> None:
    marked = ["the same trace"] * 3 + ["the cause of it"]
    found = pairs.shares(marked, "the same trace\n---")
    assert (found.distinct, found.marked, found.once) == (0.5, 0.75, 0.25)


@pytest.mark.thorough
def test_no_contender_passes_the_ceiling_of_a_pair() -> None:
    red, green = "\n".join(RED), "\n".join(GREEN)
    marked = pairs.marked_lines(red, [(300, 403)])
    most = pairs.most(marked, 1000)
    for show in pairs.contenders().values():
        found = pairs.shares(marked, within(show(red, green, 1000), 1000))
        assert found.distinct <= most.distinct
        assert found.once <= most.once
    assert 0 < most.once < 1


@pytest.mark.thorough
def test_lines_absent_from_the_green_log_are_found() -> None:
    red, green = "\n".join(RED), "\n".join(GREEN)
    assert pairs.absent(red, green, 1000) == "main.c:3: error: no such file\nmake: *** 1"
    assert pairs.ranked(red, green, 29) == "main.c:3: error: no such file"


@pytest.mark.thorough
def test_a_line_diff_keeps_order_and_tells_what_was_moved() -> None:
    green = "checkout\nprepare\nbuild 1\ntest 1\nall is well"
    red = "test 1\ncheckout\nprepare\nbuild 2\nit broke\nthe end"
    assert pairs.differing(red, green, 1000) == "test 1\nbuild 2\nit broke\nthe end"  # moved, and another number
    assert pairs.differing(red, green, 7) == "the end"
    assert pairs.differing_first(red, green, 6) == "test 1"
    assert pairs.unmoved(red, green, 1000) == "it broke\nthe end"
    assert pairs.dropped(red, green) == "it broke\nthe end"


def job(comes_and_goes: bool, *lines: str, passed: int = 0) -> jobs.Job:
    return jobs.Job("j", "", comes_and_goes, jobs.cleaned("\n".join(lines)), passed)


@pytest.mark.thorough
def test_a_verdict_abstains_unless_rules_are_sure_or_the_commit_has_passed_before() -> None:
    broken = job(False, "src/main.c:3:1: error: expected ';'")
    lost = job(True, "ERROR: Job failed (system failure): prepare environment: no node")
    silent, passed = job(True, "nothing is said"), job(True, "nothing is said", passed=1)
    assert [verdicts.judged(one, history=False) for one in (broken, lost, silent, passed)] == [False, True, None, None]
    assert [verdicts.judged(one, history=True) for one in (broken, lost, silent, passed)] == [False, True, None, True]
    assert [verdicts.told(one, history=False) for one in (broken, lost, silent, passed)] == [None, None, None, None]
    assert [verdicts.told(one, history=True) for one in (broken, lost, silent, passed)] == [None, None, None, True]
    assert verdicts.told(replace(lost, only_runner_wrote=True), history=False), "nobody else can have printed it"
    found = verdicts.measured([broken, lost, silent, passed], lambda one: verdicts.judged(one, history=True))
    assert (found.score.precision, found.abstention, found.accuracy) == (1.0, 0.25, 1.0)
    assert found.score.f1 == pytest.approx(0.8)


@pytest.mark.thorough
def test_an_answer_that_is_always_the_same_is_as_precise_as_the_jobs_are() -> None:
    found = verdicts.measured([job(True, "x"), job(False, "x")], verdicts.WAYS["always run it again"])
    assert (found.score.precision, found.score.recall, found.abstention) == (0.5, 1.0, 0.0)


@pytest.mark.thorough
def test_snippets_fill_the_budget_from_either_end() -> None:
    snippets = ["first", "second", "third"]
    assert fitting(snippets, 100, from_end=False) == fitting(snippets, 100, from_end=True) == "first\nsecond\nthird"
    assert fitting(snippets, 8, from_end=False) == "first\nse"
    assert fitting(snippets, 8, from_end=True) == "nd\nthird"


FAKE = """class DrainExtractor:
    def __init__(self, max_clusters):
        self.max_clusters = max_clusters

    def __call__(self, log):
        return list(enumerate(log.split()))[: self.max_clusters]
"""


@pytest.mark.thorough
def test_the_rivals_worker_answers_over_its_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with logdetective's calling form: number of clusters, log in, numbered snippets out."""
    (tmp_path / "logdetective").mkdir()
    (tmp_path / "logdetective" / "__init__.py").touch()
    (tmp_path / "logdetective" / "extractors.py").write_text(FAKE)
    (tmp_path / "logdetective-5.0.dist-info").mkdir()
    (tmp_path / "logdetective-5.0.dist-info" / "METADATA").write_text("Name: logdetective\nVersion: 5.0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words = " ".join(f"w{n}" for n in range(100))
    with detective.Detective(Path(sys.executable), "8 clusters") as worker:
        assert worker.version == "5.0"
        assert worker.ask(words, 1000)[0].split() == [f"w{n}" for n in range(8)]
    with detective.Detective(Path(sys.executable), "64 clusters, from the end") as worker:
        assert worker.ask(words, 7)[0].split() == ["w62", "w63"]
        assert worker.ask("é x", 7)[0].split() == ["é", "x"]


@pytest.mark.thorough
@pytest.mark.parametrize("shape", synthetic.SHAPES.values())
def test_a_made_log_is_as_long_as_it_was_asked_for(shape: Callable[[Path], synthetic.Chunks], folder: Path) -> None:
    chunks = list(synthetic.up_to(200_001, shape(folder)))
    assert sum(map(len, chunks)) == 200_001
    assert all(chunks)


def packed(path: Path, lines: list[str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress("\n".join(lines).encode()))
    return path.name


def listed(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The shape of the real folder with two logs, one pair and two jobs."""
    logs, both, jobs = tmp_path / labels.LOGS, tmp_path / labels.PAIRS, tmp_path / labels.JOBS
    marked = {"lines": [RED[-2]], "chunk": RED[-2], "source": "made", "repo": "one"}
    chunks = {**marked, "chunk": "", "chunks": [RED[-2]], "repo": "two"}
    first, second = packed(logs / "logs" / "a.log.xz", RED), packed(logs / "logs" / "b.log.xz", [*RED, *RED])
    listed(logs / "labels.jsonl", [{**marked, "log": f"logs/{first}"}, {**chunks, "log": f"logs/{second}"}])
    red, green = packed(both / "p.fail.log.xz", RED), packed(both / "p.pass.log.xz", GREEN)
    listed(both / "labels.jsonl", [{"pair": "p", "fail": red, "pass": green, "error_lines": [[402, 403]]}])
    job = {"log": packed(jobs / "j.log.xz", RED), "created_at": "2024-01-20 18:32:24+00:00"}
    listed(jobs / "labels.jsonl", [{**job, "flaky": 0}, {**job, "flaky": 1}])
    return tmp_path


def words(text: str, budget: int, /, *, baseline: str | None = None) -> str:
    return text[-budget:] if baseline is None else RED[-2]


@pytest.fixture
def with_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts are tested, not the engine."""
    monkeypatch.setattr(engine, "preview", lambda: words)


@pytest.mark.thorough
@pytest.mark.usefixtures("with_preview")
def test_quality_prints_a_row_for_everybody(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quality.report(folder, quick=False)
    printed = capsys.readouterr().out
    assert "2 failed logs of 2 repositories" in printed
    for name in [*strategies.STRATEGIES, engine.NAME]:
        assert printed.count(f"| {name} |") == len(quality.BUDGETS) + 1
    assert f"| {engine.NAME} | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 ± 0.0 |" in printed


@pytest.mark.thorough
@pytest.mark.usefixtures("with_preview")
def test_pairs_print_what_the_green_log_is_worth(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs.report(folder, quick=True)
    printed = capsys.readouterr().out
    assert f"| {engine.NAME}, no green log | 1.00 | 1.00 | 1.00 |" in printed
    assert f"| {engine.NAME}, with the green log | 1.00 | 0.50 | 0.50 |" in printed  # `make: *** 1` says too little


@pytest.mark.thorough
@pytest.mark.usefixtures("with_preview")
def test_speed_prints_the_limits_and_ours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    speed.report(folder, quick=True)
    printed = capsys.readouterr().out
    assert "bytes.count" in printed
    assert f"| {engine.NAME}, preview of 4,608 bytes |" in printed
    assert "| 2 | " in printed


def test_a_repository_is_on_the_same_side_however_a_set_spells_it() -> None:
    names = ("logchunks:Some@Project", "some-project", "cidiff:some@project:A-Workflow", "some/project")
    assert len(set(map(split.repository_key, names))) == len(set(map(split.is_kept_apart, names))) == 1
    open_, apart = split.split_by_repository([f"owner-{number}" for number in range(1000)], str)
    assert 0.15 < len(apart) / (len(open_) + len(apart)) < 0.25


def test_the_worst_family_has_enough_logs_to_say_something() -> None:
    families = [("travis", "C")] * 5 + [("travis", "Go")] * 5 + [("travis", "R")]
    assert split.worst_family(families, [0.5] * 5 + [1.0] * 5 + [0.0]) == ("C", 0.5)
    assert split.build_tool("[INFO] Building a thing 1.0") == "maven"


@pytest.mark.thorough
def test_unseen_measures_each_repository_on_its_own_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unseen.report(folder)
    unseen.report(folder, apart=True)
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if line.startswith("| recall in 4,608 |")]
    assert sum(int(row.split("|")[2]) for row in rows) == 2
    assert unseen.names_a_file("at Pattern.py:3", ["src/Pattern.py"])
    assert not unseen.names_a_file("at APattern.py:3", ["src/Pattern.py", "a.c"])


READER = """class LogPreview:
    def __init__(self):
        self.kept, self.size = [], 0

    def feed(self, chunk):
        self.size += len(chunk)
        assert len(chunk) <= 65536
        {keep}

    def text(self, budget):
        return f"{{self.size}} bytes"[:budget]
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("keep", "all_of_it"), [("self.kept.append(chunk)", True), ("pass", False)])
def test_memory_tells_a_reader_that_keeps_the_log_from_one_that_does_not(
    keep: str, all_of_it: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the streaming form, in the process that is measured."""
    room = tmp_path / "hummingbird" / "evidence"
    room.mkdir(parents=True)
    (tmp_path / "hummingbird" / "__init__.py").touch()
    (room / "__init__.py").write_text(READER.format(keep=keep))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    size = 40 * memory.MB
    told = memory.fed(synthetic.up_to(size, synthetic.one_line(tmp_path)))
    assert (told["bytes"], told["shown"]) == (size, len("40000000 bytes"))
    assert (told["peak_mb"] - memory.fed(None)["peak_mb"] > 30) is all_of_it


@pytest.mark.thorough
def test_without_an_engine_the_tables_say_so(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "preview", lambda: None)
    monkeypatch.setattr(engine, "reader", lambda: None)
    for part in (quality, pairs, speed):
        part.report(folder, quick=True)
        assert engine.ABSENT in capsys.readouterr().out
    memory.report(folder, quick=True)
    assert memory.ABSENT in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.usefixtures("with_preview")
def test_the_section_prints_every_part(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "reader", lambda: None)
    monkeypatch.setattr(sys, "argv", ["run", "evidence", "--quick", "--logs", str(folder)])
    run.main()
    printed = capsys.readouterr().out
    for heading in (
        "labelled by hand",
        "red and green",
        "Fingerprints",
        "Intermittent",
        "Verdicts by",
        "speed on one",
        "memory for",
    ):
        assert heading in printed


@pytest.mark.thorough
def test_without_the_logs_the_section_says_what_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["run", "evidence"])
    run.main()
    assert capsys.readouterr().out.strip() == NEEDED
