"""The frame of the project is shown although forty frames of its tools stand around it."""

from hummingbird.evidence import preview
from hummingbird.evidence.logs.stack_frames import SHOWN_FRAMES, find_foldable, is_tool_frame
from tests.evidence.sample_logs import noise

TOOLS = [f"\tat org.junit.jupiter.api.Assert{number}.fail(Assert{number}.java:{number})" for number in range(45)]
OWN = "\tat org.acme.shop.BasketTest.total(BasketTest.java:{})"


def failures(count: int, prefix: str = "") -> str:
    lines = noise(200)
    for number in range(count):
        lines += [
            f"[ERROR] org.acme.shop.BasketTest.total{number}  Time elapsed: 0.1 s  <<< FAILURE!",
            "org.opentest4j.AssertionFailedError: expected: <3> but was: <4>",
            *(prefix + frame for frame in [*TOOLS, OWN.format(number + 40), *TOOLS]),
        ]
    return "\n".join([*lines, *noise(20, 900)])


def test_a_frame_of_the_project_is_not_crowded_out() -> None:
    for prefix in ("", "[INFO] "):
        assert "BasketTest.java:40)" in preview(failures(3, prefix), 2_000)


def test_frames_of_tools_are_shown_where_there_is_room() -> None:
    assert "Assert30.java:30" in preview(failures(1), 16_000)
    assert "Assert30.java:30" not in preview(failures(3), 1_500)


def test_tools_are_told_from_projects() -> None:
    assert is_tool_frame("    at java.base/java.lang.Thread.run(Thread.java:840)")
    assert is_tool_frame('  File "/usr/lib/python3.12/unittest/case.py", line 58, in run')
    assert is_tool_frame("      at Runner.run (/app/node_modules/mocha/lib/runner.js:3:7)")
    assert not is_tool_frame("    at org.acme.java.Basket.total(Basket.java:3)")
    assert not is_tool_frame("      at total (lib/basket.js:33:7)")


def test_the_first_frames_of_a_run_are_never_folded() -> None:
    texts = [*TOOLS[:9], OWN, *TOOLS[:9]]
    numbers = range(1, len(texts) + 1)
    folded = find_foldable(texts, [True] * len(texts), numbers)
    assert folded == {*range(SHOWN_FRAMES, 9), *range(10 + SHOWN_FRAMES, 19)}
    behind_a_gap = find_foldable(TOOLS[:3], [True] * 3, range(700, 703))
    assert behind_a_gap == {0, 1, 2}
