"""Sources: what outsiders say is not heard, what is secret is not told, and nobody is asked whom
the operator did not name. The hostile case holds one of everything."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from shutil import copytree

import pytest

from hummingbird.agent.tools.registry import Toolbox
from hummingbird.app.source_registry import create_sources
from hummingbird.core.errors import ArgumentsInvalid, CallDenied, SourceRefused
from hummingbird.core.projections import render_transcript
from hummingbird.core.protocols.tools import ByteStream, DataSource, Tool, ToolContext
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from tests.journeys.staging import declared, on_stage, order

CONTEXT = ToolContext("session", "call")
TRUSTED = 30
GOOD = {
    "mr_iid": 1, "sha": "a" * 40, "path": "README.md", "ref": "main", "job_id": 1, "pipeline_id": 1, "job_name": "unit",
}  # fmt: skip
OTHER_PROJECTS = ("acme/secrets", "101", "1", "../x", "a%2fb", "", "http://169.254.169.254/x", "аcme/widgets")
ADDRESSES = (
    "http://169.254.169.254/latest/meta-data/", "https://example.com/x", "file:///etc/passwd", "http://[::1]/x",
    "http://2130706433/x", "KNOWN.example.com/x", "KNOWN@example.com/x", "gopher://example.com/x", "//example.com/x",
)  # fmt: skip


async def asked(scene: Scene, folder: Path, tool: str, **arguments: object) -> str:
    """What the tool itself gives, before anybody shortens or fences it."""
    found = create_sources(declared(scene, folder), {})
    try:
        call = next(each for source in found for each in source.tools if each.spec.name == tool)
        output = await call(arguments, CONTEXT)
        if isinstance(output, ByteStream):
            return b"".join([chunk async for chunk in output.chunks]).decode() + output.note
        return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    finally:
        for source in found:
            await source.close()


async def test_not_a_word_of_outsiders_notes_comes_through(tmp_path: Path) -> None:
    with Scene(find_case("hostile")) as scene:
        world = scene.worlds.gitlab
        request = world.merge_request
        told = await asked(scene, tmp_path, "gitlab_get_mr_discussions", mr_iid=request.iid)
        members = world.project.members
        outsiders = [
            note
            for note in request.notes
            if not note.system
            and (
                note.author_id not in members
                or members[note.author_id].access_level < TRUSTED
                or world.user(note.author_id).state != "active"
            )
        ]
        insiders = [note for note in request.notes if not note.system and note not in outsiders]
        system = [note for note in request.notes if note.system]
    assert len(outsiders) >= 4
    assert insiders
    assert system
    for note in outsiders:
        words = [line for line in note.body.splitlines() if len(line) > 12]
        assert words, "a note without words proves nothing"
        assert not [line for line in words if line in told or json.dumps(line, ensure_ascii=False)[1:-1] in told]
    quoted = [re.findall(r"[\"“*`](.{6,})[\"”*`]", note.body) for note in system]
    assert not [words for found in quoted for words in found if words in told]
    said = [line for note in insiders for line in note.body.splitlines() if len(line) > 12 and line.isascii()]
    assert any(json.dumps(line)[1:-1] in told for line in said), "those who may speak are heard"


def leaking(case: str, log: str, folder: Path, *tokens: str) -> Path:
    """The case with a job that prints the very tokens with which its log is read, where the failure is."""
    copy = Path(copytree(find_case(case).folder, folder / "case"))
    file = copy / log
    lines = "".join(f"error: cannot log in with {token}\n" for token in tokens)
    file.write_bytes(file.read_bytes().replace(b"error", lines.encode() + b"error", 1))
    return copy


@pytest.mark.parametrize(
    ("case", "log", "tool"),
    [
        ("compiler-error", "logs/code-quality.log", "gitlab_get_job_log"),
        (
            "konflux-build-and-test",
            "konflux/logs/server-cli-on-pull-request-8pblb-build-container-pod/step-build.log",
            "konflux_get_pod_log",
        ),
    ],
)
def test_no_token_of_the_sources_stands_in_a_journal_a_transcript_or_a_report(
    case: str, log: str, tool: str, tmp_path: Path
) -> None:
    tokens = [Scene.read_token, Scene.konflux_token] if "konflux" in case else [Scene.read_token]
    with on_stage(str(leaking(case, log, tmp_path, *tokens)), tmp_path) as (scene, agent, told):
        report = agent.chat(order(scene))
    assert told.results[tool].count("cannot log in with [masked]") >= len(tokens)
    kept = "".join(file.read_text("utf-8", "replace") for file in (tmp_path / "sessions").rglob("*.jsonl"))
    assert tool in kept
    for text in (kept, report, render_transcript(told.entries), repr(told.entries)):
        assert not [token for token in tokens if token in text]


@pytest.mark.thorough
def test_a_token_that_a_job_prints_is_masked_on_its_way(tmp_path: Path) -> None:
    with on_stage("hostile", tmp_path) as (scene, agent, told):
        agent.chat(order(scene))
        log = scene.case.list_files("logs", "*.log")[0].read_text("utf-8", "replace")
    planted = re.findall(r"glpat-[\w-]{10,}", log)
    assert planted
    assert not [token for token in planted if token in repr(told.entries)]


def offered(scene: Scene, folder: Path) -> tuple[list[DataSource], dict[str, Tool]]:
    found = create_sources(declared(scene, folder), {})
    return found, {tool.spec.name: tool for source in found for tool in source.tools}


async def refused(found: dict[str, Tool], name: str, arguments: Mapping[str, object]) -> str:
    """As a model would be told, by the schema or by the tool itself."""
    try:
        prepared = Toolbox([found[name]]).prepare(name, json.dumps(arguments))
        await found[name](prepared.arguments, CONTEXT)
    except (ArgumentsInvalid, CallDenied, SourceRefused) as error:
        return str(error)
    pytest.fail(f"{name} took {arguments}")


async def test_every_project_but_the_events_is_refused_by_every_tool_that_takes_one(tmp_path: Path) -> None:
    with Scene(find_case("konflux-build-and-test")) as scene:
        own = scene.worlds.gitlab.project.path
        found, tools = offered(scene, tmp_path)
        takers = [name for name, tool in tools.items() if "project" in tool.spec.schema["properties"]]
        assert len(takers) == 15
        for name in takers:
            needed = {each: GOOD[each] for each in tools[name].spec.schema["required"]}
            for project in (*OTHER_PROJECTS, f"{own}.git", f"{own} ", f"{own}%2f..", f"{own}/../x", f"{own}\0"):
                await refused(tools, name, {**needed, "project": project})
        assert scene.run_in_server(lambda worlds: list(worlds.gitlab.requests)) == []
        for source in found:
            await source.close()


@pytest.mark.parametrize("url", ADDRESSES)
async def test_addresses_that_the_operator_did_not_name_are_refused(url: str, tmp_path: Path) -> None:
    with Scene(find_case("konflux-build-and-test")) as scene:
        found, tools = offered(scene, tmp_path)
        takers = [name for name, tool in tools.items() if "url" in tool.spec.schema["properties"]]
        assert takers == ["tf_get_test_log"], "a new tool that takes an address must be tried with these"
        known = scene.url("artifacts")
        await refused(tools, "tf_get_test_log", {"url": url.replace("KNOWN", known)})
        for source in found:
            await source.close()
