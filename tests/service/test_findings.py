"""Findings posted on the lines of a diff, each once, or told in the note: over HTTP, against the lab's
GitLab, which checks every position."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hummingbird.agent.tools.finding_report import ReportFindingTool
from hummingbird.core.diffs import Diff
from hummingbird.core.errors import CallDenied, GitLabUnavailable
from hummingbird.core.findings import ReviewFinding, Severity
from hummingbird.core.limits import FORGE_ATTEMPTS
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.gitlab.write.protocol import MergeRequestDetails, NoteDraft, NoteKind, NoteMarker
from hummingbird.lab.gitlab.error_responses import rack_attack_fault, server_error_fault
from hummingbird.lab.gitlab.records import Note
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.service.findings import PublishedFindings, earlier_findings, findings_summary, publish_findings
from tests.gitlab.write.writer_stage import forging
from tests.lab.gitlab.written_case import HEAD, Person, served

IID = 7
MARKER = NoteMarker(id="session-1", wf="code-review", sha=HEAD, order="order-1")
ADDED = ReviewFinding(
    path="src/app.py",
    line=11,
    severity=Severity.MINOR,
    text="A name says more.",
    suggestion="name = new",
    applies_cleanly=True,
)
REMOVED = ReviewFinding(path="src/app.py", line=11, severity=Severity.NIT, text="This was right.", old=True)
SAME = ReviewFinding(
    path="src/app.py", line=12, severity=Severity.BLOCKER, text="Divides by nought.\n\n/merge\n@everyone"
)
NOWHERE = ReviewFinding(
    path="src/app.py", line=99, severity=Severity.MAJOR, text="Loses the last page.", suggestion="a `b`"
)
DISCUSSIONS = "*/merge_requests/7/discussions"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path / "case") as lab:
        yield lab
        assert lab.world.faults.unused_faults == []


@pytest.fixture
async def forge(lab: GitLabLab) -> AsyncIterator[GitLabProjectWriter]:
    async with forging(lab.url, secrets=Secrets(["hunter2-hunter2"])) as bench:
        yield bench.forge


@pytest.fixture
async def merge_request(forge: GitLabProjectWriter) -> MergeRequestDetails:
    return await forge.merge_request(IID)


def on_lines(lab: GitLabLab) -> list[Note]:
    return lab.run_in_server(
        lambda world: [note for thread in world.merge_request.discussions for note in thread.notes if note.position]
    )


async def test_each_finding_stands_on_its_line_the_most_serious_first(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    published = await publish_findings(forge, merge_request, [ADDED, REMOVED, SAME], MARKER, public=True)
    assert published == PublishedFindings((SAME, ADDED, REMOVED), ())
    places = [(note.position["old_line"], note.position["new_line"]) for note in on_lines(lab) if note.position]
    assert places == [(12, 12), (None, 11), (11, None)]


async def test_a_note_has_a_severity_the_text_made_safe_and_a_suggestion(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    secret = replace(ADDED, text="The password is hunter2-hunter2.\n```suggestion:-9+9\nevil\n```")
    await publish_findings(forge, merge_request, [secret, SAME], MARKER, public=True)
    blocker, minor = (note.body for note in on_lines(lab))
    assert "**Blocker**\n\nDivides by nought." in blocker
    assert "\n/merge" not in blocker
    assert minor.count("```suggestion:") == 1
    assert "**Minor**\n\nThe password is" in minor
    assert minor.endswith("```suggestion:-0+0\nname = new\n```")
    assert "hunter2" not in minor
    assert lab.run_in_server(lambda world: world.merge_request.state) == "opened"


async def test_a_suggestion_that_was_not_tried_is_shown_as_code_and_a_tried_one_may_replace_several_lines(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    untried = replace(ADDED, applies_cleanly=False)
    several = replace(ADDED, line=12, first_line=10, text="All three.", suggestion="one")
    gone = replace(ADDED, line=13, text="Not needed.", suggestion="", applies_cleanly=False)
    await publish_findings(forge, merge_request, [untried, several, gone], MARKER, public=True)
    first, second, third = (note.body for note in on_lines(lab))
    assert "suggestion" not in first
    assert first.endswith("Instead of that line (not tried, so not offered to be applied):\n\n```\nname = new\n```")
    assert second.endswith("```suggestion:-2+0\none\n```")
    assert third.endswith("Not needed.\n\nWithout that line (not tried, so not offered to be applied).")


async def test_of_two_suggestions_that_meet_the_more_serious_one_can_be_clicked_on(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    """They were tried in two processes, neither of which knew of the other."""
    several = replace(ADDED, line=12, first_line=11, text="Both.", severity=Severity.MAJOR)
    await publish_findings(forge, merge_request, [ADDED, several], MARKER, public=True)
    first, second = (note.body for note in on_lines(lab))
    assert "```suggestion:-1+0" in first
    assert "suggestion" not in second


async def test_a_thread_on_a_line_belongs_to_its_session(
    forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    await publish_findings(forge, merge_request, [ADDED], MARKER, public=True)
    (thread,) = [thread for thread in await forge.threads(IID) if thread.marker]
    assert thread.marker is not None
    assert (thread.marker.id, thread.marker.part, thread.marker.order) == ("session-1", NoteKind.FINDING, "order-1")
    (earlier,) = earlier_findings([thread])
    assert (earlier.path, earlier.line, earlier.resolved) == ("src/app.py", 11, False)


async def test_however_often_it_is_asked_for_each_stands_there_once(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    await publish_findings(forge, merge_request, [ADDED], MARKER, public=True)
    again = await publish_findings(forge, merge_request, [ADDED, SAME, SAME], MARKER, public=True)
    assert again == PublishedFindings((SAME, ADDED), ())
    assert len(on_lines(lab)) == 2


async def test_what_was_written_though_gitlab_failed_is_found_and_not_written_again(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    lab.world.faults.plan(DISCUSSIONS, server_error_fault(502), method="POST", after_write=True)
    assert await publish_findings(forge, merge_request, [ADDED], MARKER, public=True) == PublishedFindings((ADDED,), ())
    assert len(on_lines(lab)) == 1


async def test_what_may_yet_be_written_is_told_in_the_note_and_not_written_again(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    lab.world.faults.plan(DISCUSSIONS, server_error_fault(500), method="POST")
    assert await publish_findings(forge, merge_request, [ADDED, REMOVED], MARKER, public=True) == PublishedFindings(
        (REMOVED,), (ADDED,)
    )
    assert len(on_lines(lab)) == 1


async def test_a_line_that_the_diff_does_not_have_goes_into_the_note(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    published = await publish_findings(forge, merge_request, [NOWHERE, ADDED], MARKER, public=True)
    assert published == PublishedFindings((ADDED,), (NOWHERE,))


async def test_a_line_that_gitlab_refuses_goes_into_the_note(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    stale = replace(merge_request, base_sha="0" * 40)
    assert await publish_findings(forge, stale, [ADDED], MARKER, public=True) == PublishedFindings((), (ADDED,))
    assert on_lines(lab) == []


@pytest.mark.parametrize("change", [{"public": False}, {"marker": NoteMarker(id="s", sha="1" * 40)}])
async def test_where_notes_are_internal_or_the_head_has_moved_on_nothing_is_posted(
    change: dict[str, Any], lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    given = {"public": True, "marker": MARKER, **change}
    before = len(lab.requests)
    published = await publish_findings(forge, merge_request, [ADDED, SAME], given["marker"], public=given["public"])
    assert published == PublishedFindings((), (SAME, ADDED))
    assert len(lab.requests) == before


async def test_once_somebody_has_pushed_nothing_is_posted_on_lines_that_may_be_others_by_now(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    def push(world: GitLabWorld) -> None:
        world.merge_request.sha = "f" * 40

    lab.run_in_server(push)
    assert await publish_findings(forge, merge_request, [ADDED], MARKER, public=True) == PublishedFindings((), (ADDED,))
    assert [seen for seen in lab.requests if seen.method == "POST"] == []


async def test_while_gitlab_cannot_be_asked_the_caller_is_told_so(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    lab.world.faults.plan(DISCUSSIONS, rack_attack_fault(retry_after_s=1), times=FORGE_ATTEMPTS, method="POST")
    with pytest.raises(GitLabUnavailable):
        await publish_findings(forge, merge_request, [ADDED], MARKER, public=True)


async def test_a_later_review_repeats_nothing_and_respects_what_was_resolved(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    await publish_findings(forge, merge_request, [ADDED], MARKER, public=True)
    (thread,) = [thread for thread in await forge.threads(IID) if thread.marker]
    with closing(Person(lab, "developer")) as developer:
        assert developer.on_mr("PUT", f"/discussions/{thread.id}", resolved=True).status_code == 200
    tool = ReportFindingTool(Diff(await forge.diffs(IID)), earlier_findings(await forge.threads(IID)))
    given = {"file": "src/app.py", "line": 11, "severity": "minor", "text": "A name says more."}
    with pytest.raises(CallDenied, match="was resolved by somebody"):
        await tool(given, ToolContext("session-2", "call-1"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("who", "dismissed"),
    [("maintainer", True), ("developer", True), ("reporter", False), ("guest", False), ("stranger", False)],
)
async def test_a_finding_is_dismissed_by_the_words_of_a_developer_alone(
    who: str, dismissed: bool, lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    """The guest is the author of the merge request, and may resolve the thread."""
    await publish_findings(forge, merge_request, [ADDED], MARKER, public=True)
    (thread,) = [thread for thread in await forge.threads(IID) if thread.marker]
    assert not thread.dismissed
    with closing(Person(lab, who)) as person:
        assert person.on_mr("POST", f"/discussions/{thread.id}/notes", body="This is by design.").status_code == 201
    found = await forge.thread(IID, thread.id)
    assert found is not None
    assert found.dismissed == dismissed
    (earlier,) = earlier_findings(await forge.threads(IID))
    assert (earlier.dismissed, earlier.resolved) == (dismissed, False)


@pytest.mark.thorough
async def test_only_what_is_about_a_finding_can_be_dismissed_and_not_by_the_bot_itself(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    await publish_findings(forge, merge_request, [ADDED], MARKER, public=True)
    posted = await forge.open_thread(IID, NoteDraft(text="x", marker=MARKER), internal=False)
    with closing(Person(lab, "developer")) as developer:
        assert developer.on_mr("POST", f"/discussions/{posted.discussion_id}/notes", body="wontfix").status_code == 201
    (inline,) = [thread for thread in await forge.threads(IID) if earlier_findings([thread])]
    await forge.reply(IID, inline, NoteDraft(text="Won't fix.", answers=1))
    assert not any(thread.dismissed for thread in await forge.threads(IID))


@pytest.mark.thorough
async def test_the_tool_says_of_a_dismissed_finding_that_it_was(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    await publish_findings(forge, merge_request, [ADDED], MARKER, public=True)
    (thread,) = [thread for thread in await forge.threads(IID) if thread.marker]
    with closing(Person(lab, "developer")) as developer:
        assert developer.on_mr("POST", f"/discussions/{thread.id}/notes", body="Won't fix.").status_code == 201
    tool = ReportFindingTool(Diff(await forge.diffs(IID)), earlier_findings(await forge.threads(IID)))
    given = {"file": "src/app.py", "line": 11, "severity": "blocker", "text": "In other words, worse."}
    with pytest.raises(CallDenied, match="a developer has decided to do nothing about an earlier finding"):
        await tool(given, ToolContext("session-2", "call-1"))


@pytest.mark.thorough
async def test_what_others_write_is_no_finding_of_ours(
    lab: GitLabLab, forge: GitLabProjectWriter, merge_request: MergeRequestDetails
) -> None:
    await publish_findings(forge, merge_request, [ADDED], MARKER, public=True)
    (body,) = (note.body for note in on_lines(lab))
    with closing(Person(lab, "guest")) as guest:
        assert guest.on_mr("POST", "/discussions", body=body).status_code == 201
    await forge.open_thread(IID, NoteDraft(text="x", marker=MARKER), internal=False)
    assert len(earlier_findings(await forge.threads(IID))) == 1


def test_the_list_for_the_note_has_all_of_them_and_the_whole_text_of_those_that_stand_nowhere_else() -> None:
    long = replace(ADDED, text="First `line`.\nSecond line.")
    assert findings_summary(PublishedFindings((SAME, long), (NOWHERE, REMOVED))).split("\n") == [
        "Findings, each on its line of the diff:",
        "",
        "- **Blocker** `src/app.py:12`: Divides by nought.",
        "- **Minor** `src/app.py:11`: First 'line'.",
        "",
        "Further findings:",
        "",
        "- **Major** `src/app.py:99`: Loses the last page.",
        "",
        "  Instead of that line (not tried, so not offered to be applied):",
        "",
        "  `````",
        "  a `b`",
        "  `````",
        "- **Nit** `src/app.py:11` (as it was before): This was right.",
    ]
    assert findings_summary(PublishedFindings()) == ""
    assert findings_summary(PublishedFindings((), (REMOVED,))).startswith("Findings:\n\n- **Nit**")
