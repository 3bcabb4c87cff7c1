"""With the same job's green log at hand, what it said too is no news."""

import pytest

from hummingbird.evidence import Baseline, LogPreview, analyse, preview
from tests.evidence.sample_logs import noise

OLD = "src/legacy/driver.c:17:3: error: ignoring unknown option -fold"
NEW = "src/cart/price.c:42:13: error: unknown type name 'money'"


def log(*lines: str) -> str:
    return "\n".join([*noise(150), *lines, *noise(150, 1_000)]) + "\n"


GREEN = log(OLD)
RED = "\n".join([*noise(150), OLD, *noise(60, 500), NEW, *noise(150, 1_000)]) + "\n"
RED_TURNED = "\n".join([*noise(150), NEW, *noise(60, 500), OLD, *noise(150, 1_000)]) + "\n"


def place(text: str, said: str, baseline: str | None) -> int:
    regions = analyse(text, baseline=baseline).regions
    return next((at for at, region in enumerate(regions) if said in region.excerpt), 99)


@pytest.mark.parametrize("red", [RED, RED_TURNED])
def test_an_error_that_the_green_log_has_too_ranks_below_one_that_is_new(red: str) -> None:
    assert place(red, NEW, GREEN) == 0
    assert place(red, OLD, GREEN) > 0
    assert NEW in preview(red, 200, baseline=GREEN)
    assert OLD not in preview(red, 80, baseline=GREEN)


def test_the_green_log_decides_and_not_the_place() -> None:
    assert place(RED, OLD, log(NEW)) == 0
    assert place(RED, NEW, log(NEW)) > 0


def test_numbers_and_times_do_not_make_news() -> None:
    green = log(f"2024-01-01T00:00:00.0000000Z {OLD.replace('17:3', '99:12')}")
    for red in (RED, RED_TURNED):
        assert place(red, NEW, green) == 0
        assert place(red, OLD, green) > 0


def test_a_green_log_fed_in_pieces_is_the_same_as_the_whole() -> None:
    whole, pieces = Baseline.from_text(GREEN), Baseline()
    for at in range(0, len(GREEN), 7):
        pieces.feed(GREEN.encode()[at : at + 7])
    texts = [OLD, NEW, *noise(20)]
    assert pieces.adjust_scores(texts, [0.0] * 22) == whole.adjust_scores(texts, [0.0] * 22)
    assert whole.adjust_scores([OLD], [0.0]) < whole.adjust_scores([NEW], [0.0])


def test_the_last_line_of_a_green_log_counts_without_its_end_too() -> None:
    assert Baseline.from_text(f"fine\n{OLD}").adjust_scores([OLD], [0.0]) == Baseline.from_text(
        f"{OLD}\nfine\n"
    ).adjust_scores([OLD], [0.0])


@pytest.mark.parametrize("green", ["", "\n", "\x00\x01", "x" * 100_000])
def test_a_green_log_that_says_nothing_hides_nothing(green: str) -> None:
    assert OLD in preview(GREEN, 300, baseline=green)


def test_a_log_in_which_all_is_known_still_shows_something() -> None:
    assert OLD in preview(GREEN, 2_000, baseline=GREEN)


def test_a_preview_while_it_streams_takes_a_green_log_too() -> None:
    reading = LogPreview(Baseline.from_text(GREEN))
    reading.feed(RED.encode())
    assert reading.text(200) == preview(RED, 200, baseline=GREEN)


def test_a_new_line_is_found_behind_hundreds_of_known_errors() -> None:
    names = [f"{a}{b}{c}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
    known = [f"[12:00:31] worker {name}: error: {name} is not ready, it failed again" for name in names]
    news = "[12:00:31] cannot open the basket: no such shop"
    red = "\n".join([*noise(50), *known[:100], news, *known[100:], *noise(10, 900)])
    green = "\n".join([*noise(50), *known, *noise(10, 900)])
    assert news in preview(red, 300, baseline=green)
    assert news in analyse(red, baseline=green).regions[0].excerpt


def test_known_frames_below_a_new_error_are_part_of_it() -> None:
    frames = [f"    at org.acme.shop.Basket.total{number}(Basket.java:{number})" for number in range(4)]
    green = log("java.lang.IllegalStateException: on purpose", *frames)
    red = log("java.lang.NullPointerException: no currency", *frames)
    region = analyse(red, baseline=green).regions[0]
    assert [line.text for line in region.lines][1:] == frames
