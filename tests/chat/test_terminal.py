"""The terminal as a person has it: a real one, drawn by tmux."""

import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chat.window import Window
from tests.thoroughly import also

Windows = Callable[..., Window]


def numbers_in(bird: Window) -> list[int]:
    """Of the words of a slow answer, in the order in which they stand there."""
    return [int(found) for found in re.findall(r"word(\d+)", bird.all())]


def test_markdown_streams_into_the_scrollback_and_the_status_line_says_where_one_stands(window: Windows) -> None:
    bird = window()
    bird.send("markdown")
    seen = bird.wait_for("That was all of it.")
    assert "# Birds" in seen
    assert "A hummingbird hovers." in seen
    assert '```python\ndef hover() -> str:\n    return "there"\n```' in seen
    assert re.search(r"wing +beats\n *─+\n *left +80", seen)
    assert "ready · scripted:bird · context 12% · $0.0123 · cache 80% · abcdef12" in bird.last(1)
    assert "\x1b[1m" in bird.coloured()


def test_typing_is_echoed_while_an_answer_streams_and_what_is_sent_then_waits_in_order(window: Windows) -> None:
    bird = window()
    bird.send("slow 6")
    bird.wait_until_printed("word20 ")
    bird.type("typed meanwhile")
    bird.wait_for("› typed meanwhile")
    assert "word1199" not in bird.all()
    bird.press("Enter")
    bird.send("and one more")
    bird.wait_for("queued: typed meanwhile\nqueued: and one more\n›")
    bird.wait_for("2 queued")
    bird.wait_for("heard 12 characters: and one more")
    whole = bird.all()
    assert whole.index("word1199") < whole.index("> typed meanwhile") < whole.index("> and one more")
    assert whole.count("word1199") == 1


def test_ctrl_c_interrupts_and_gives_back_what_was_waiting(window: Windows) -> None:
    bird = window()
    bird.send("slow 20")
    bird.wait_until_printed("word20 ")
    bird.send("one that waits")
    bird.wait_for("1 queued")
    bird.type("a draft")
    bird.wait_for("› a draft")
    bird.press("C-c")
    bird.wait_for("■ interrupted")
    bird.wait_for("› one that waits\n  a draft\nready")
    bird.press("Enter")
    bird.wait_for("heard 22 characters")


def test_ctrl_c_twice_leaves_in_the_middle_of_a_run(window: Windows) -> None:
    bird = window()
    bird.send("slow 20")
    bird.wait_until_printed("word20 ")
    bird.press("C-c", "C-c")
    seen = bird.wait_for("ENDED 0")
    assert "hummingbird chat --resume abcdef123456" in seen


def test_the_prompt_is_there_although_the_run_takes_its_time_to_end(window: Windows) -> None:
    bird = window()
    bird.send("stubborn")
    bird.wait_until_printed("word20 ")
    bird.press("C-c")
    bird.send("typed after it")
    bird.wait_for("queued: typed after it")
    assert "ended at last" not in bird.screen()
    bird.wait_for("heard 14 characters: typed after it")


@pytest.mark.thorough
def test_ctrl_c_clears_the_input_which_up_brings_back_and_ctrl_d_leaves(window: Windows) -> None:
    bird = window()
    bird.type("not lost")
    bird.wait_for("› not lost")
    bird.press("C-c")
    bird.wait_for(lambda seen: "not lost" not in seen)
    bird.press("Up")
    bird.wait_for("› not lost")
    time.sleep(2.1)  # or the next Ctrl-C would be the second one
    bird.press("C-c")
    bird.wait_for(lambda seen: "not lost" not in seen)
    bird.press("C-d")
    bird.wait_for("ENDED 0")


@pytest.mark.thorough
def test_a_resize_while_an_answer_streams_loses_and_repeats_nothing(window: Windows) -> None:
    bird = window()
    bird.send("slow 3")
    bird.wait_for(lambda _: 100 in numbers_in(bird))
    bird.resize(60, 20)
    bird.wait_for(lambda seen: all(len(line) <= 60 for line in seen.splitlines()) and "›" in seen)
    bird.wait_for(lambda _: 300 in numbers_in(bird))
    bird.resize(120, 35)
    bird.wait_for(lambda _: numbers_in(bird) == list(range(600)))
    bird.send("still there")
    bird.wait_for("heard 11 characters: still there")


@pytest.mark.thorough
def test_a_resize_while_a_frame_is_made_loses_and_repeats_nothing(window: Windows) -> None:
    bird = window()
    bird.send("resized")
    bird.wait_for(lambda _: numbers_in(bird) == list(range(600)))


@pytest.mark.thorough
def test_without_colour_the_same_content_comes_without_a_single_escape_sequence(window: Windows) -> None:
    bird = window(NO_COLOR="1")
    bird.send("markdown")
    bird.wait_for("That was all of it.")
    bird.wait_for("ready")
    assert "\x1b" not in bird.coloured()
    assert "# Birds" in bird.screen()


@pytest.mark.thorough
def test_escape_sequences_of_a_model_are_shown_and_not_obeyed(window: Windows) -> None:
    bird = window()
    before = bird.title()
    bird.send("nasty")
    seen = bird.wait_for("end")
    assert r"nasty \x1b]0;owned\x07 \x1b[2J" in seen
    assert r"\u202e end" in seen
    assert "bird is here" in seen  # the screen was not cleared
    assert bird.title() == before


@pytest.mark.thorough
def test_a_tool_shows_its_start_its_progress_and_what_came_and_the_list_as_it_changes(window: Windows) -> None:
    bird = window()
    bird.send("/verbose")
    bird.send("tools")
    bird.wait_for("compiling wings.c")
    seen = bird.wait_for("done with tools")
    assert "✓ Ran make all\n    line one\n    line two" in seen
    bird.wait_for("[>] 1. look at the wings")
    assert "I reason about it." in seen
    assert "compiling" not in seen
    bird.press("C-o")
    bird.wait_for("▾ Changed the to-do list")


@pytest.mark.thorough
def test_a_question_is_answered_while_the_answer_streams_and_gives_the_draft_back(
    window: Windows, tmp_path: Path
) -> None:
    bird = window()
    bird.send(f"ask 0 {tmp_path / 'go'}")
    bird.type("y and a draft")
    bird.wait_for("› y and a draft")
    (tmp_path / "go").touch()
    bird.wait_for("? Run make all\n❯ 1 yes (y)\n  2 yes, and")
    assert "? Run on this machine\n    make all" in bird.all()
    assert "word" in bird.screen()
    bird.type("s")
    bird.wait_for("answered session")
    bird.wait_for("› y and a draft")


@pytest.mark.thorough
def test_words_are_a_no_with_words_and_an_interrupt_takes_the_question_off(window: Windows) -> None:
    bird = window()
    bird.send("ask")
    bird.wait_for("no, and say what to do instead")
    bird.send("you should use ninja")  # whose first letter alone would be a yes
    bird.wait_for("answered None you should use ninja")
    bird.wait_for("ready")
    bird.send("ask")
    bird.wait_for("no, and say what to do instead")
    bird.press("C-c")
    bird.wait_for("the question is withdrawn")
    bird.wait_for(lambda seen: "no, and" not in seen.split("withdrawn")[-1] and "\n›\nready" in seen)


def test_an_edit_is_shown_as_a_coloured_diff_before_it_is_made_and_one_key_allows_it(window: Windows) -> None:
    bird = window()
    bird.send("edit")
    bird.wait_for("❯ 1 yes (y)")
    asked = bird.coloured()
    assert re.search(r"\x1b\[31m(\x1b\[\d+m)*    -    return 80", asked)
    assert re.search(r"\x1b\[32m(\x1b\[\d+m)*    \+    return 81", asked)
    bird.press("Down", "Up", "Down")
    bird.wait_for("❯ 2 yes")
    bird.type("y")
    bird.wait_for("answered once")
    assert bird.all().count("return 81") == 1


def test_shift_tab_changes_the_mode_and_accepts_edits_at_a_question(window: Windows) -> None:
    bird = window()
    bird.press("BTab")
    bird.wait_for("ready · ACCEPTS EDITS")
    bird.press("BTab")
    bird.wait_for("ready · PLAN")
    bird.send("/default")
    bird.wait_for(lambda seen: "ready · scripted:bird" in seen)
    bird.send("edit")
    bird.wait_for("2 yes, and accept all edits from now on")
    bird.press("BTab")
    bird.wait_for("answered session")
    bird.send("edit")
    bird.wait_for("edited without asking")
    bird.wait_for("ready · ACCEPTS EDITS")
    bird.send("/permissions allow Bash(git diff *)")
    bird.wait_for("From now on: allow Bash(git diff *) (this session)")
    bird.send("/permissions")
    bird.wait_for("  1. allow Bash(git diff *)  (session)")


@pytest.mark.thorough
def test_esc_at_a_permission_declines_it_and_ends_the_run(window: Windows) -> None:
    bird = window()
    bird.send("ask")
    bird.wait_for("❯ 1 yes (y)")
    bird.press("Escape")
    bird.wait_for("■ interrupted")


@pytest.mark.thorough
def test_in_a_small_window_a_long_call_is_printed_whole_and_the_keys_are_seen(window: Windows) -> None:
    bird = window(columns=50, rows=12)
    bird.send("ask 200")
    bird.wait_for("all of it is above")
    bird.wait_for("❯ 1 yes (y)")
    printed = "".join(bird.all().split())
    assert "makeall" + "long" * 200 + "END" in printed
    bird.type("n")
    bird.wait_for("Say what to do instead")
    bird.press("Enter")
    bird.wait_for("answered None")


@pytest.mark.thorough
def test_a_clarifying_question_takes_a_number_and_esc_says_nothing(window: Windows) -> None:
    bird = window()
    bird.send("clarify")
    bird.wait_for("  2 right\n  3 in your own words")
    bird.type("2")
    bird.wait_for("chose 'right'")
    bird.send("clarify")
    bird.wait_for("  2 right\n  3 in your own words")
    bird.send("neither")
    bird.wait_for("chose 'neither'")
    bird.send("clarify")
    bird.wait_for("  2 right\n  3 in your own words")
    bird.press("Escape")
    bird.wait_for("chose ''")


@pytest.mark.thorough
def test_ten_megabytes_can_be_pasted_and_are_put_away_as_a_file(window: Windows) -> None:
    bird = window()
    bird.paste(b"0123456789abcde\n" * 640 * 1024)
    bird.wait_for(lambda seen: re.search(r"› \[pasted 1-[0-9a-f]{6}: 10,485,760 characters\]", seen) is not None)
    bird.send(" what is it?")
    bird.wait_for("[10,485,760 characters, all of them in the file /kept/past")


@pytest.mark.thorough
def test_a_paste_that_was_not_sent_is_there_again_tomorrow(window: Windows, tmp_path: Path) -> None:
    history = str(tmp_path / "history")
    bird = window(BIRD_HISTORY=history)
    bird.type("look at ")
    bird.paste(b"0123456789abcde\n" * 6 * 1024)
    bird.wait_for("98,304 characters]")
    bird.press("C-c", "Up")  # read at once: Up comes before the history is loaded again
    bird.wait_for("The history keeps 65,536 characters of it; the last 32,776 are")
    bird.wait_for("› look at [pasted 1-", 30)
    bird.leave()
    again = window(BIRD_HISTORY=history)
    again.press("Up")
    again.wait_for("› look at [pasted 1-")
    again.press("Enter")
    again.wait_for("look at [65,528 characters, all of them in the file")


@pytest.mark.thorough
def test_a_paste_keeps_its_lines_and_bytes_that_are_no_text_are_said_once(window: Windows) -> None:
    bird = window()
    bird.paste(b"first\nsecond \xff\n")
    seen = bird.wait_for("second �")
    assert "› first\n  second �" in seen
    bird.paste(b"\xfe")
    bird.wait_for("  �")
    bird.wait_for("not all UTF-8")
    assert bird.screen().count("not all UTF-8") == 1


@pytest.mark.thorough
def test_new_lines_history_search_and_completion(window: Windows, tmp_path: Path) -> None:
    (tmp_path / "wings.py").write_text("flap = 80\n")
    bird = window(BIRD_HISTORY=str(tmp_path / "state" / "history"))
    bird.type("one")
    bird.press("C-j")
    bird.type("two")
    bird.press("M-Enter")
    bird.type("hunter2")
    bird.wait_for("› one\n  two\n  hunter2")
    bird.press("Enter")
    bird.wait_for("heard 15 characters")
    bird.type("/mod")
    bird.wait_for("choose the model, or name one")
    bird.press("C-u")
    bird.type("@win")
    bird.wait_for("wings.py")
    bird.press("Tab")
    bird.wait_for("› @wings.py")
    bird.press("Enter")
    bird.press("Enter")
    bird.wait_for("The file wings.py")
    bird.press("C-r")
    bird.type("one")
    bird.wait_for("› one\n  two")
    bird.press("Enter")
    kept = tmp_path / "state" / "history"
    assert "hunter2" not in kept.read_text()
    assert "[masked]" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.thorough
def test_whoever_closes_the_window_leaves_and_nothing_goes_on_behind_it(window: Windows, tmp_path: Path) -> None:
    bird = window(BIRD_CLOSED=str(tmp_path / "closed"))
    bird.send("slow 60")
    bird.wait_until_printed("word20 ")
    bird.close()
    until = time.monotonic() + 60
    while not (tmp_path / "closed").exists():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.thorough
def test_compress_is_carried_out_and_shown(window: Windows) -> None:
    bird = window()
    bird.send("/compress")
    seen = bird.wait_for("9,000 → 2,000 tokens (78% less)")
    assert "They talked about birds." in seen
    bird.wait_for("/compress undo takes it back.")


def test_resume_is_a_list_that_typing_filters(window: Windows) -> None:
    bird = window()
    bird.type("a draft")
    bird.press("C-u")
    bird.send("/resume")
    seen = bird.wait_for("type to filter")
    assert re.search(r"❯ birds · \d+d ago · here\n  nests of the north · \d+d ago · /far/away · They are warm.", seen)
    bird.type("warm")
    bird.wait_for("❯ nests of the north")
    bird.wait_for("1 of 2")
    bird.press("Enter")
    bird.wait_for("No session's id begins with 0123456789.")
    bird.send("/resume")
    bird.wait_for("❯ birds")
    bird.press("Escape")
    bird.wait_for("No session is chosen")


def test_a_session_that_was_cut_off_shows_its_end_and_can_be_gone_on_with(window: Windows) -> None:
    bird = window(BIRD_LAST="1")
    seen = bird.wait_for("/continue goes on with it.")
    assert "> mend the wings\n\nI began to look.\n■ The run was cut off.\n" in seen
    bird.send("/continue")
    bird.wait_for("heard 29 characters: Go on where you were cut off.")


@pytest.mark.thorough
def test_undo_and_rewind_offer_the_files_as_well(window: Windows) -> None:
    bird = window()
    bird.send("one")
    bird.wait_for("heard 3 characters")
    bird.send("write")
    bird.wait_for("wrote wings.py")
    bird.send("/undo")
    bird.wait_for("❯ the message and the files: wings.py\n  the message only")
    bird.press("Enter")
    bird.wait_for("wings.py is as it was 1 messages ago.")
    bird.wait_for("› write")
    bird.press("Enter")
    bird.wait_for(lambda _: bird.all().count("wrote wings.py") == 2)
    bird.send("/rewind")
    bird.wait_for("❯ write\n  one")
    bird.press("Down", "Enter")
    bird.wait_for("Take back the changes of wings.py as well?")
    bird.wait_for("❯ 1 yes (y)")
    bird.type("y")
    bird.wait_for("wings.py is as it was 2 messages ago.")
    bird.wait_for("› one")


def test_lines_that_were_typed_during_the_start_are_separate_messages(window: Windows) -> None:
    bird = window(early=["one", "two"])
    bird.wait_for("heard 3 characters: two")
    assert "heard 3 characters: one" in bird.all()


def test_esc_interrupts_and_one_line_says_so(window: Windows) -> None:
    bird = window()
    bird.send("slow 60")
    bird.wait_until_printed("word20 ")
    bird.press("Escape")
    bird.wait_for("■ interrupted")
    bird.wait_for("ready ·")
    assert len(re.findall("interrupt", bird.all())) == 1
    bird.send("/modle owl")
    bird.wait_for("There is no command /modle, so nothing is sent. Did you mean /model")
    bird.wait_for("› /modle owl")


@pytest.mark.parametrize(("away_s", "rings"), [("0", 2), also("600", 0)])
def test_the_bell_rings_for_somebody_who_is_away(window: Windows, tmp_path: Path, away_s: str, rings: int) -> None:
    """At a question, and at the end of a run."""
    bird, raw = window(BIRD_BELL=away_s), tmp_path / "raw"
    bird.record(raw)
    bird.send("ask")
    bird.wait_for("1 yes")
    bird.press("y")
    bird.wait_for("answered")
    bird.wait_for("ready ·")
    bird.wait_for(lambda _: b"answered" in raw.read_bytes() and raw.read_bytes().count(b"\a") == rings)


def test_in_a_narrow_window_every_word_of_a_menu_can_be_read(window: Windows) -> None:
    bird = window(columns=24, rows=24)
    bird.send("edit")
    seen = bird.wait_for("instead (n)")
    menu = " ".join(seen.partition("1 yes (y)")[2].split())
    assert menu.startswith("2 yes, and accept all edits from now on; Shift-Tab changes that (s) 3 no, and say what")


@pytest.mark.thorough
def test_ctrl_g_opens_the_input_in_an_editor(window: Windows, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "written in an editor" > "$1"\n')
    editor.chmod(0o755)
    bird = window(VISUAL=str(editor))
    bird.type("a draft")
    bird.press("C-g")
    bird.wait_for("› written in an editor")


def test_images_come_from_the_clipboard_and_from_files_that_are_dropped(window: Windows, tmp_path: Path) -> None:
    png = tmp_path / "shot.png"
    png.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    clipboard = tmp_path / "bin" / "xclip"
    clipboard.parent.mkdir()
    clipboard.write_text(f'#!/bin/sh\ncat "{png}"\n')
    clipboard.chmod(0o755)
    bird = window(PATH=f"{clipboard.parent}:{os.environ['PATH']}", DISPLAY=":9")
    bird.type("see ")
    bird.press("C-v")
    bird.wait_for(lambda seen: bool(re.search(r"› see \[image 1-\w{6}: pasted.png\]", seen)))
    bird.paste(f" {png}".encode())
    bird.wait_for(lambda seen: bool(re.search(r"pasted.png\]\[image 2-\w{6}: shot.png\]", seen)))
    bird.press("Enter")
    bird.wait_for("heard 44 characters: see [image 1: pasted.png][image 2: shot.png]")


def test_keys_that_people_know_from_other_agents(window: Windows) -> None:
    bird = window()
    bird.type("one \\")
    bird.press("Enter")
    bird.type("two")
    bird.wait_for(lambda seen: "› one\n  two" in seen)
    bird.press("C-s")
    bird.wait_for("put aside")
    bird.send("a question between")
    bird.wait_for("heard 18 characters: a question between")
    bird.wait_for(lambda seen: "› one\n  two" in seen)
    bird.press("M-p")
    bird.wait_for("Which model from now on?")
    bird.type("owl")
    bird.press("Enter")
    bird.wait_for("From the next message on: scripted:owl")
    bird.wait_for(lambda seen: "› one\n  two" in seen)
    bird.press("Escape", "Escape")
    bird.wait_for(lambda seen: "› one\n  two" not in seen)
    bird.press("Escape", "Escape")
    bird.wait_for("Go back to before which message?")
    bird.press("Escape")
    bird.wait_for(lambda seen: "Go back to" not in seen)
    bird.press("Up")
    bird.wait_for(lambda seen: "› one\n  two" in seen)


def test_ctrl_c_clears_what_was_typed_since_the_last_one_and_does_not_leave(window: Windows) -> None:
    bird = window()
    for text in ("one", "two"):
        bird.type(text)
        bird.wait_for(f"› {text}")
        bird.press("C-c")
        bird.wait_for(lambda seen: seen.rstrip().splitlines()[-2].strip() == "›")
    bird.send("still here")
    bird.wait_for("heard 10 characters: still here")


def test_up_takes_back_what_waits_so_that_it_can_be_changed(window: Windows) -> None:
    bird = window()
    bird.send("slow 60")
    bird.wait_for("word9 ")
    bird.send("too early")
    bird.wait_for("queued: too early")
    bird.press("Up")
    bird.wait_for(lambda seen: "queued:" not in seen and "› too early" in seen)
    bird.press("C-c")
    bird.wait_for("■ interrupted")
    assert "heard" not in bird.all()
