"""Keys that decide what is said on a merge request, where, and what becomes of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hummingbird.core.findings import ReviewFinding, Severity
from hummingbird.lab.gitlab.records import Commit
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.merge_request_changes import push
from hummingbird.service.note_text import NOTHING_TO_REPORT
from tests.config.effects.desk import AUTHOR, FAILED, at_desk

PIPELINE = ("trigger: pipeline",)
LINKED = "https://linked.example/there"
NEXT = "b" * 40


@pytest.mark.parametrize(
    ("settings", "workflow", "link"),
    [
        ((f"docs_url: {LINKED}",), (), f"[Documentation]({LINKED})"),
        ((f"source_url: {LINKED}",), (), f"[Source code]({LINKED})"),
        ((f"slack_url: {LINKED}",), (), f"[Slack]({LINKED})"),
        ((f"slack_url: {LINKED}", "slack_label: birds"), (), f"[birds]({LINKED})"),
        ((), (f"workflow_url: {LINKED}",), f"[Prompt]({LINKED})"),
    ],
)
async def test_links_of_the_configuration_stand_in_the_first_note(
    tmp_path: Path, settings: Sequence[str], workflow: Sequence[str], link: str
) -> None:
    """And nothing that is not configured."""
    async with at_desk(tmp_path) as desk:
        desk.says(*settings, workflow=(*PIPELINE, *workflow))
        await desk.comes()
        first, result = desk.notes
        assert link in first.body
        assert first.body.count("](https://") == 1
        assert LINKED not in result.body


@pytest.mark.parametrize("linked", [True, False])
async def test_with_a_dashboard_the_transcript_is_linked_there(tmp_path: Path, linked: bool) -> None:
    async with at_desk(tmp_path) as desk:
        desk.says(*([f"dashboard_url: {LINKED}"] if linked else []), workflow=PIPELINE)
        await desk.comes()
        _, result = desk.notes
        assert ("<summary>Transcript</summary>" in result.body) is not linked
        assert (f"]({LINKED}/sessions/" in result.body) is linked


async def test_description_is_what_help_says_of_a_workflow(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        desk.says(workflow=("description: Looks at red pipelines",))
        await desk.commands("/hummingbird help")
        assert "`analyze-failures`: Looks at red pipelines" in desk.notes[-1].body


@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("level", ["settings", "workflow", "project"])
async def test_internal_notes_decide_who_reads_a_result(tmp_path: Path, level: str, internal: bool) -> None:
    """On each level, and the nearest holds."""
    near, far = (f"internal_notes: {str(value).lower()}" for value in (internal, not internal))
    async with at_desk(tmp_path) as desk:
        desk.says_on(level, near, far)
        await desk.comes()
        assert [note.internal for note in desk.notes] == [internal, internal]


@pytest.mark.parametrize(("value", "notes"), [("line", 2), ("silence", 1)])
async def test_nothing_found_is_a_line_or_silence(tmp_path: Path, value: str, notes: int) -> None:
    async with at_desk(tmp_path, text=NOTHING_TO_REPORT) as desk:
        desk.says(workflow=(*PIPELINE, f"nothing_found: {value}"))
        await desk.comes()
        assert len(desk.notes) == notes
        assert ("nothing follows" in desk.notes[0].body) is (value == "silence")


@pytest.mark.thorough
@pytest.mark.parametrize("inline", [True, False])
async def test_inline_findings_stand_on_lines_of_the_diff(tmp_path: Path, inline: bool) -> None:
    path = "common/src/comp/ability.rs"
    found = ReviewFinding(path=path, line=16, severity=Severity.MAJOR, text="Say what it is for.")
    async with at_desk(tmp_path, findings=[found]) as desk:
        desk.says(workflow=(*PIPELINE, f"inline_findings: {str(inline).lower()}"))
        await desk.comes()
        on_lines = [note.position["new_path"] for note in desk.notes if note.position]
        assert on_lines == ([path] if inline else [])


@pytest.mark.thorough
@pytest.mark.parametrize("resolving", [True, False])
async def test_auto_resolve_on_push_resolves_threads_about_older_commits(tmp_path: Path, resolving: bool) -> None:
    async with at_desk(tmp_path) as desk:
        desk.says(workflow=(*PIPELINE, f"auto_resolve_on_push: {str(resolving).lower()}"))
        await desk.comes()
        old = desk.world(lambda world: world.merge_request.sha)
        desk.world(pushed)
        await desk.comes({"kind": "merge_request", "action": "update", "oldrev": old})
        assert [thread.resolved for thread in desk.threads] == [resolving]


def pushed(world: GitLabWorld) -> None:
    author = world.find_user(AUTHOR)
    assert author is not None
    commit = Commit(NEXT, "Fill it in", "Fill it in", author.name, "tove@example.org", world.next_timestamp())
    push(world, world.merge_request, author, [commit])


@pytest.mark.thorough
@pytest.mark.parametrize("resolving", [True, False])
async def test_auto_resolve_on_success_resolves_threads_when_all_is_green(tmp_path: Path, resolving: bool) -> None:
    async with at_desk(tmp_path) as desk:
        desk.says(workflow=(*PIPELINE, f"auto_resolve_on_success: {str(resolving).lower()}"))
        await desk.comes()
        desk.world(passed)
        await desk.comes()
        assert [thread.resolved for thread in desk.threads] == [resolving]


def passed(world: GitLabWorld) -> None:
    pipeline = world.find_pipeline(FAILED)
    assert pipeline is not None
    pipeline.status = "success"
    for job in world.jobs:
        job.status = "success" if job.pipeline_id == FAILED else job.status
