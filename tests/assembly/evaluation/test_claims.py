"""Claims that stand in nothing that was fetched."""

import json

from hummingbird.assembly.evaluation.claims import claims_of
from hummingbird.domain.journal import Delegated, Entry, ToolFinished, UserSaid

LOG = "12: make: *** [all] Error 2\nerror: no such file\nsrc/main.c:3: oops\nsee http://gitlab/jobs/1\n"
FETCHED: list[Entry] = [ToolFinished(at=0.0, call_id="1", name="log", text=LOG)]


def test_what_was_fetched_is_no_false_claim() -> None:
    answer = (
        "[job](http://gitlab/jobs/1#L3) breaks in src/main.c:3\n"
        "```\n7: make: *** [all] Error 2\n  error: no such file\n…\n}\n```"
    )
    assert claims_of(answer, FETCHED) == claims_of(answer, FETCHED).__class__(4, 0)


def test_each_kind_of_claim_is_looked_for() -> None:
    answer = "[job](http://gitlab/jobs/2) breaks in src/other.c:3\n```\nerror: no such fil\nerror: made up\n```"
    found = claims_of(answer, FETCHED)
    assert (found.made, found.wrong) == (4, 4)
    assert found.unfounded == ("error: no such fil", "error: made up", "http://gitlab/jobs/2", "src/other.c:3")


def test_a_record_is_taken_apart_before_it_is_searched() -> None:
    output = 'java.lang.Error: "it" broke\n\tat Main.java\u202e'
    record: list[Entry] = [ToolFinished(at=0.0, call_id="1", name="report", text=json.dumps({"output": output}))]
    answer = '```\njava.lang.Error: "it" broke\n\tat Main.java\n```'
    assert claims_of(answer, record).wrong == 0


def test_the_task_and_what_sub_agents_fetched_count_too() -> None:
    told: list[Entry] = [
        UserSaid(at=0.0, text='{"sha": "abcdef0"}'),
        Delegated(at=0.0, call_id="1", task=1, entry=ToolFinished(at=0.0, call_id="2", name="x", text="a line of it")),
    ]
    assert claims_of("```\na line of it\n```", told).wrong == 0


def test_a_models_own_words_prove_nothing() -> None:
    assert claims_of("```\nnot there\n```", []).wrong == 1
