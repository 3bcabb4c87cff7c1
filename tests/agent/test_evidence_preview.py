"""A spilled output shows what explains the failure, not what happens to stand first."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.agent.tools.preview import HeadTailPreview, create_evidence_preview
from hummingbird.agent.tools.spill import SpillShape
from hummingbird.core.limits import PREVIEW_BYTES
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.core.tool_spec import ToolSpec
from tests.agent.benches import in_pieces, start, workbench
from tests.evidence.sample_logs import SAMPLES, around, noise
from tests.evidence.sample_reports import PYTEST, SUREFIRE
from tests.thoroughly import also, tries

TEKTON = Path(__file__).parents[1] / "fixtures" / "evidence" / "tekton"
LOOK = ToolSpec("look", "Looks.", {"type": "object"})


def of(content: bytes, suffix: str = "log", budget: int = PREVIEW_BYTES, size: int = 4_096) -> str:
    preview = create_evidence_preview(suffix)
    for at in range(0, len(content), size):
        preview.feed(content[at : at + size])
    return preview.text(budget)


def plain(content: bytes, budget: int = PREVIEW_BYTES) -> str:
    preview = HeadTailPreview()
    preview.feed(content)
    return preview.text(budget)


@pytest.mark.parametrize("suffix", ["log", also("txt"), also("")])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_log_shows_its_cause_and_its_first_and_last_line_with_numbers(name: str, suffix: str) -> None:
    sample = SAMPLES[name]
    lines = sample.text.splitlines()
    shown = of(sample.text.encode(), suffix).split("\n")

    assert shown[0] == f"1: {lines[0]}"
    assert shown[-1] == f"{len(lines)}: {lines[-1]}"
    number = next(number for number, line in enumerate(lines, 1) if sample.decisive in line)
    assert any(line.startswith(f"{number}: ") and sample.decisive in line for line in shown)
    assert len("\n".join(shown).encode()) <= PREVIEW_BYTES


async def test_a_spilled_log_shows_its_cause_in_the_conversation() -> None:
    """By the shape that every tool's output goes through, from text and from a stream."""
    text = "\n".join([*noise(3_000), "src/parser.c:42:13: error: 'depth' undeclared", *noise(2_000, 9_000)])
    async with workbench() as bench:
        await start(bench)
        for output in (text, ByteStream(in_pieces([text.encode()[:70_001], text.encode()[70_001:]]))):
            told = await SpillShape(bench, Secrets([]))(LOOK, output)
            assert "\n3001: src/parser.c:42:13: error: 'depth' undeclared\n" in told
            assert f"\n1: {noise(1)[0]}\n" in told
            assert "\n5001: " in told
            assert len(told.encode()) <= PREVIEW_BYTES


@pytest.mark.parametrize("report", [SUREFIRE, PYTEST], ids=["surefire", "pytest"])
def test_a_test_report_is_read_by_its_structure(report: bytes) -> None:
    shown = of(report, "xml", size=11)
    assert shown.startswith("Test report, ")
    assert "1 failed" in shown
    assert len(shown.encode()) <= PREVIEW_BYTES
    assert of(report, "txt") == of(report, "xml")  # what `cat` prints


@pytest.mark.parametrize("file", sorted(TEKTON.glob("*run_*.json")), ids=lambda file: file.stem)
def test_a_tekton_object_is_read_by_its_structure(file: Path) -> None:
    content = json.dumps(json.loads(file.read_text("utf-8")), indent=2).encode()
    shown = of(content, "json", size=997)
    assert shown.split("\n")[0] == of(content, "json").split("\n")[0]
    assert not shown.startswith("1: ")
    assert len(shown.encode()) <= PREVIEW_BYTES
    assert of(content, "txt", size=997) == shown


def test_json_that_is_no_tekton_object_is_shown_as_lines() -> None:
    calm = json.dumps({"jobs": [{"name": f"job {n}"} for n in range(900)]}, indent=1).encode()
    upset = json.dumps([*({"n": n} for n in range(900)), {"message": "error: no currency is set"}], indent=1).encode()

    assert of(calm, "json") == plain(calm)
    assert "error: no currency is set" in of(upset, "json")
    assert of(upset, "json").startswith("1: [")


@pytest.mark.parametrize("suffix", ["xml", "json"])
@pytest.mark.parametrize(
    "content", [b"", b"not what it says", b"<html><body>hello</body></html>", b"[1, 2", b"\xff\x00"]
)
def test_what_is_not_what_its_suffix_says_is_shown_as_head_and_tail(suffix: str, content: bytes) -> None:
    assert of(content, suffix) == plain(content)


@pytest.mark.parametrize("lines", [0, 1, 30, 5_000])
@pytest.mark.parametrize("budget", [0, 40, 500, PREVIEW_BYTES])
def test_where_nothing_stands_out_it_is_the_plain_preview(lines: int, budget: int) -> None:
    content = "\n".join(noise(lines)).encode()
    assert of(content, budget=budget) == plain(content, budget)


@settings(max_examples=tries(80), deadline=None)
@given(
    st.lists(
        st.sampled_from([b"error: gone\n", b"fine\n", b"FAIL: x\n", b"{", b"<testsuite>"]) | st.binary(max_size=90)
    ),
    st.sampled_from(["log", "xml", "json"]),
    st.integers(0, 2 * PREVIEW_BYTES),
    st.integers(1, 40),
)
def test_no_preview_is_over_its_budget_or_over_the_limit(
    parts: list[bytes], suffix: str, budget: int, times: int
) -> None:
    shown = of(b"".join(parts) * times, suffix, budget).encode()  # strictly: half a character would raise
    assert len(shown) <= min(budget, PREVIEW_BYTES)


@pytest.mark.thorough
def test_the_size_of_the_chunks_does_not_matter() -> None:
    content = around(SAMPLES["test: jest"].said.splitlines()).encode()
    assert {of(content, size=size) for size in (1, 7, 4_096, len(content))} == {of(content)}


WORDS = [one + other for one in "bcdfghklmnprstvw" for other in ("ackage", "older", "ine", "ost", "unning", "able")]


def test_more_failures_than_fit_leave_room_for_the_first_and_the_last_line_and_no_more() -> None:
    failures = [f"src/{word}.c:3:1: error: there is no such thing as a {word}" for word in WORDS]
    lines = around([line for failure in failures for line in (failure, *noise(3))]).splitlines()
    content = "\n".join(lines).encode()
    shown = of(content).split("\n")

    assert shown[0] == f"1: {lines[0]}"
    assert shown[-1] == f"{len(lines)}: {lines[-1]}"
    assert sum(": error: there is no" in line for line in shown) > 20
    assert PREVIEW_BYTES * 0.9 < len("\n".join(shown).encode()) <= PREVIEW_BYTES
    assert of(content, budget=100_000) == of(content)
