"""A diff that is too long for the conversation is shown as a diff: its files, then whole hunks."""

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.agent.tools.preview import create_evidence_preview
from hummingbird.core.limits import PREVIEW_BYTES
from tests.thoroughly import tries

BUG = "+    for number in range(len(entries) // size):"


def file_diff(path: str, hunks: int = 1, lines: int = 6, added: str = "+    error = failed(item)") -> str:
    head = f"diff --git a/{path} b/{path}\nindex 1a2b3c4..5d6e7f8 100644\n--- a/{path}\n+++ b/{path}\n"
    parts = []
    for number in range(hunks):
        first = 1 + 40 * number
        parts.append(f"@@ -{first},{lines} +{first},{lines + 1} @@ def part_{number}():\n")
        parts += [f"     line {first + at}\n" for at in range(lines)] + [f"{added}\n"]
    return head + "".join(parts)


def shown(content: str, budget: int = PREVIEW_BYTES, piece: int = 4_096) -> str:
    preview, raw = create_evidence_preview("diff"), content.encode()
    for at in range(0, len(raw), piece):
        preview.feed(raw[at : at + piece])
    return preview.text(budget)


def test_every_file_is_listed_and_every_shown_hunk_is_whole() -> None:
    content = "".join(file_diff(f"src/part_{number}.py", hunks=9) for number in range(12))
    text = shown(content)
    assert text.startswith(
        "[12 files are changed: 108 lines added, 0 removed]\n[src/part_0.py: +9 -0, lines 1 to 76]\n"
    )
    assert "[src/part_11.py: +9 -0, lines 837 to 912]" in text
    lines = content.splitlines()
    numbered = {int(found[1]): found[2] for line in text.splitlines() if (found := re.fullmatch(r"(\d+): (.*)", line))}
    assert all(lines[number - 1] == line for number, line in numbered.items())
    heads = [number for number, line in numbered.items() if line.startswith("@@")]
    assert len(heads) >= 12, "at least one of each file"
    assert all(number + at in numbered for number in heads for at in range(8))
    assert "left out: lines 1 to 4 of 912" in text
    assert len(text.encode()) <= PREVIEW_BYTES


def test_words_that_look_like_a_failure_do_not_make_a_log_of_it() -> None:
    traceback = '+Traceback (most recent call last):\n+  File "a.py", line 1\n+ValueError: boom\n'
    loud = f"diff --git a/t.txt b/t.txt\nnew file mode 100644\n--- /dev/null\n+++ b/t.txt\n@@ -0,0 +1,3 @@\n{traceback}"
    text = shown("".join(file_diff(f"src/{number}.py") for number in range(60)) + loud)
    assert "[t.txt: +3 -0, lines 661 to 668]" in text or "more files]" in text
    assert "1: diff" not in text
    assert "5: @@ -1,6 +1,7 @@ def part_0():" in text


def test_a_hunk_that_is_too_long_is_begun_where_no_whole_one_fits() -> None:
    text = shown(file_diff("src/big.py", lines=900))
    assert "[src/big.py: +1 -0, lines 1 to 906]" in text
    assert "\n5: @@ -1,900 +1,901 @@" in text
    assert text.endswith("of 906 …]")


def test_one_record_per_file_is_previewed_in_the_same_way() -> None:
    hunk = "@@ -1,2 +1,3 @@\n one\n" + BUG + "\n two\n"
    records = [{"old_path": f"src/{n}.py", "new_path": f"src/{n}.py", "diff": hunk} for n in range(200)]
    content = "".join(json.dumps(one) + "\n" for one in records) + '{"files": 200, "without_text": []}\n'
    text = shown(content)
    assert text.startswith("[200 files are changed: 200 lines added, 0 removed]\n[src/0.py: +1 -0, line 1]\n")
    assert f"[src/0.py, in line 1:]\n@@ -1,2 +1,3 @@\n one\n{BUG}\n two\n" in text


def test_a_log_that_prints_a_diff_stays_a_log() -> None:
    log = "$ clang-format --diff\n" + file_diff("src/a.c") + "".join(f"step {number}\n" for number in range(4_000))
    assert "files are changed" not in shown(log + "error: format differs\n")
    begins = file_diff("src/a.c") + "".join(f"step {number}\n" for number in range(4_000)) + "error: cannot build\n"
    assert "error: cannot build" in shown(begins)


@settings(max_examples=tries(60), deadline=None)
@given(st.integers(0, 2 * PREVIEW_BYTES), st.integers(1, 400), st.integers(1, 12), st.integers(1, 80))
def test_it_is_within_its_budget_however_it_comes(budget: int, piece: int, files: int, lines: int) -> None:
    content = "".join(file_diff(f"src/{number}.py", hunks=3, lines=lines) for number in range(files))
    text = shown(content, budget, piece)
    assert len(text.encode()) <= min(budget, PREVIEW_BYTES)
    assert text == shown(content, budget)
