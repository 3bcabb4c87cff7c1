"""`hummingbird chat -q` and pipes: exit codes, lines of JSON, megabytes that are not text."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from hummingbird.core.journal import JournalEntry, load_entry
from hummingbird.core.projections import UsageLedger
from tests.chat.window import environment
from tests.journeys.chat.processes import below
from tests.journeys.chat.stage import PATIENCE_S, Home, calling, parsed, saying, until
from tests.standins.vendors.script import Fault
from tests.thoroughly import also

MEGABYTES = 5


def test_one_question_prints_nothing_but_the_answer_and_ends_with_3_after_a_refused_call(home: Home) -> None:
    home.lab.script.extend(calling("terminal", command="touch made"), saying("# It is **so**"))
    ran = home.piped_process("-q", "is it so?")
    assert (ran.code, ran.out) == (3, "# It is **so**\n")
    assert "nobody can be asked here" in home.asked()
    assert "chat.permissions" in home.asked(), "the model can say how it would be allowed"
    assert not (home.workspace / "made").exists()


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(401, "refused the credential (401): check the API key"), (402, "no credit or quota left (402): top it up")],
)
def test_a_refused_credential_and_an_empty_account_end_with_1_and_say_what_to_do(
    status: int, sentence: str, home: Home
) -> None:
    home.lab.script.extend(Fault("status", status=status, message="no"))
    ran = home.piped("-q", "anybody?")
    assert ran.code == 1
    assert sentence in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.thorough
def test_a_model_that_takes_no_tools_is_told_in_one_sentence_that_says_what_to_do(home: Home) -> None:
    home.lab.script.extend(
        Fault("status", status=400, message="registry.example/library/gemma:2b does not support tools"),
        saying("Without tools I answer."),
    )
    ran = home.piped("-q", "hello")
    assert ran.code == 1
    assert ran.err.count("takes no tools") == 1
    assert 'name another model, or talk without tools (hummingbird chat --toolsets "")' in ran.err
    again = home.piped("-q", "hello", "--toolsets", "")
    assert (again.code, again.out) == (0, "Without tools I answer.\n")
    assert not home.lab.requests[-1].body.get("tools")


@pytest.mark.thorough
def test_every_line_of_json_can_be_read_and_they_sum_up_to_the_bill(home: Home) -> None:
    home.lab.script.extend(calling("sandbox_exec", command="echo one"), saying("Two calls."))
    ran = home.piped("-q", "count", "--json")
    assert ran.code == 0, ran.err
    lines = list(parsed(ran.out))
    *_, result = lines
    assert (result["kind"], result["final_response"], result["api_calls"]) == ("result", "Two calls.", 2)
    bill = UsageLedger.from_entries(_entries(ran.out)).bill()
    assert float(bill.known_usd) == result["cost"] > 0
    assert (bill.usage.context, bill.usage.output) == (
        result["usage"]["input_tokens"],
        result["usage"]["output_tokens"],
    )
    assert "".join(line["text"] for line in lines if line["kind"] == "text_delta") == "Two calls."


def _entries(lines: str) -> Iterator[JournalEntry]:
    known = {"text_delta", "reasoning_delta", "call_delta", "progress", "told", "result"}
    for number, (line, one) in enumerate(zip(lines.splitlines(), parsed(lines), strict=True), 1):
        if one["kind"] not in known:
            yield load_entry(line.encode(), number)


@pytest.mark.thorough
def test_lines_of_a_pipe_are_messages_and_commands_of_one_session(home: Home) -> None:
    home.lab.script.extend(saying("One."), saying("Two."))
    ran = home.piped(stdin=b"first\n/cost\nsecond\n")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("One.\n")
    assert ran.out.endswith("Two.\n")
    assert "$" in ran.out
    assert "first" in home.asked()
    assert len(home.sessions()) == 1


@pytest.mark.thorough
def test_megabytes_that_are_no_text_are_put_into_a_file_and_answered(home: Home) -> None:
    home.lab.script.extend(saying("I looked at the file."))
    ran = home.piped("-q", "-", stdin=b"\xff\xfe\x80 line\n" * (MEGABYTES * 1024 * 1024 // 9))
    assert (ran.code, ran.out) == (0, "I looked at the file.\n")
    assert ran.err.count("not all UTF-8") == 1
    assert "all of them in the file" in home.asked()
    assert len(home.asked()) < 200_000


@pytest.mark.thorough
def test_an_interrupt_ends_with_130_and_leaves_no_process(home: Home) -> None:
    home.configure({"permissions": [{"action": "allow", "tool": "terminal"}]})
    home.lab.script.extend(calling("terminal", command="sleep 304 & sleep 305"))
    pipe = subprocess.PIPE
    with subprocess.Popen(home.words("-q", "wait"), env=environment(**home.given), stdout=pipe, stderr=pipe) as running:
        try:
            until(lambda: [one for one in below(running.pid) if b"sleep 305" in one.line])
            started = below(running.pid)
            os.kill(running.pid, signal.SIGINT)
            _, told = running.communicate(timeout=PATIENCE_S)
        finally:
            running.kill()  # if it has not ended as it should
    assert running.returncode == 130, told
    assert b"Traceback" not in told
    until(lambda: not [one for one in started if one.alive], lambda: [one for one in started if one.alive])


@pytest.mark.parametrize("limit", [("--max-turns", "1"), also(("--max-usd", "0"))])
def test_options_limit_the_run_and_add_to_the_prompt(limit: tuple[str, str], home: Home) -> None:
    home.lab.script.extend(calling("todo"), saying("So far."))
    ran = home.piped("-q", "plan it", *limit, "--append-system-prompt", "Speak like a sailor.", "--effort", "low")
    assert home.lab.requests[0].body["reasoning"]["effort"] == "low"
    assert (ran.code, ran.out) == (0, "So far.\n")
    assert "Speak like a sailor." in home.asked(0)
    assert home.lab.requests[1].body["tool_choice"] == "none", "the last answer"


@pytest.mark.thorough
def test_standard_input_does_not_choose_what_is_read(home: Home) -> None:
    (home.workspace / "key.txt").write_text("hidden word")
    home.lab.script.extend(saying("Seen."), saying("Read."))
    assert home.piped("-q", "-", stdin=b"the log says @key.txt").code == 0
    assert "@key.txt" in home.asked()
    assert "hidden word" not in home.asked()
    assert home.piped("-q", "what says @key.txt").code == 0
    assert "hidden word" in home.asked()
