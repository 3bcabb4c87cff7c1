"""`hummingbird run`: what can be typed, what cannot, and what a person then reads."""

import json
import re
from pathlib import Path

import pytest

from tests.app.running_on import LOOKS_TOO, ONLY_ELSEWHERE, ORCHESTRATOR, WORKFLOW, Site, site
from tests.cli.typing_in import Typed, typed

EVENT = ("--event", '{"iid": 7}')
NAMED = ("--workflow", WORKFLOW, "--project", "some/project")
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: bare, context: {cluster: c, user: u}}
- {name: my-cluster/my-namespace, context: {cluster: c, user: u, namespace: my-namespace}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two workflows, and a GitLab that nobody can reach."""
    (tmp_path / "look.md").write_text("Look.")
    lines = ["settings: {gitlab_url: 'http://127.0.0.1:9'}", "workflows:"]
    lines += [f"  {WORKFLOW}: {{prompt: look.md, projects: {{'*': {{}}}}}}"]
    lines += [f"  {ONLY_ELSEWHERE}: {{prompt: look.md, projects: {{some/where: {{}}}}}}"]
    file = tmp_path / "hummingbird.yaml"
    file.write_text("\n".join(lines) + "\n")
    return file


def run(config: Path, *arguments: str, **variables: str) -> Typed:
    given = {"CONFIG_PATH": str(config), "HUMMINGBIRD_HOME": str(config.parent / "state"), **variables}
    return typed("run", *arguments, environment=given)


def at(here: Site, *arguments: str, **variables: str) -> Typed:
    return typed("run", *arguments, environment={**here.environment, "CONFIG_PATH": str(here.config), **variables})


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        EVENT,
        ("--workflow", WORKFLOW, *EVENT),
        ("--project", "some/project", *EVENT),
        NAMED,
        (*NAMED, *EVENT, "--event-file", "event.json"),
        (*NAMED, *EVENT, "--resume-session", "folder"),
        (*NAMED, *EVENT, "--message", "Hello?"),
        (*NAMED, *EVENT, "--sandbox", "chroot"),
        (*NAMED, *EVENT, "--sandbox", "podman", "--context", "c", "--namespace", "n"),
        (*NAMED, *EVENT, "--sandbox", "podman", "--namespace", "n"),
        ("--workflow", "", "--project", "", *EVENT),
        ("--workflow", WORKFLOW, "--project", " ", *EVENT),
        ("--event-file", ""),
        (*NAMED, *EVENT, "extra"),
    ],
)
def test_what_does_not_go_together_is_bad_usage(config: Path, arguments: tuple[str, ...]) -> None:
    done = run(config, *arguments)
    assert done.code == 2
    assert "Usage:" in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--workflow", "nope", "--project", "a/b", *EVENT), f"There are: {WORKFLOW}, {ONLY_ELSEWHERE}."),
        (("--workflow", ONLY_ELSEWHERE, "--project", "a/b", *EVENT), "has it for: some/where."),
        (("--workflow", WORKFLOW, "--project", "project", *EVENT), "write it like group/project"),
        ((*NAMED, *EVENT, "--namespace", "n"), "--namespace is for Kubernetes, and commands run in bubblewrap"),
        ((*NAMED, "--event", "{"), "The event is not JSON."),
        ((*NAMED, "--event", "[]"), "not a JSON object"),
        ((*NAMED, "--event", '{"sha": "abc123"}'), "iid"),
        ((*NAMED, "--event", '{"iid": "7"}'), "iid as something else than a number"),
        ((*NAMED, "--event", '{"iid": true}'), "iid as something else than a number"),
        ((*NAMED, "--event", '{"iid": -7}'), "iid as something else than a number"),
        ((*NAMED, "--event", '{"iid": 7, "pipeline_id": "9"}'), "pipeline_id as something else than a number"),
        ((*NAMED, "--event", '{"iid": 7, "sha": 12}'), "sha as something else than a text"),
        ((*NAMED, "--event", '{"iid": 7, "nope": 1}'), "'nope'"),
        (("--event-file", "/nowhere/event.json"), "/nowhere/event.json cannot be read: No such file"),
        (("--event-file", "/"), "cannot be read: Is a directory"),
        ((*NAMED, "--resume-session", "/nowhere", "--message", "Hello?"), "/nowhere"),
        ((*NAMED, *EVENT, "--save-session", "/dev/null/x"), "/dev/null/x cannot be used"),
        ((*NAMED, *EVENT, "--model", "nobody:nothing"), "nobody"),
        ((*NAMED, *EVENT, "--execute"), ORCHESTRATOR),
        ((*NAMED, *EVENT, "--context", "nope"), "nope"),
        ((*NAMED, *EVENT, "--context", "bare"), "names no namespace"),
    ],
)
def test_what_cannot_be_is_one_sentence(config: Path, arguments: tuple[str, ...], said: str) -> None:
    """It says what is wrong, and there is no traceback."""
    kubeconfig = config.with_name("kubeconfig")
    kubeconfig.write_text(KUBECONFIG)
    done = run(config, *arguments, KUBECONFIG=str(kubeconfig))
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


@pytest.mark.parametrize("where", [("my-cluster/my-namespace",), ("bare", "--namespace", "n")])
def test_a_context_means_kubernetes_where_a_namespace_is_known(tmp_path: Path, where: tuple[str, ...]) -> None:
    """As the reference documents have it, the context may name the namespace."""
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    with site(tmp_path) as here:
        named = ("--workflow", WORKFLOW, "--project", here.project, "--event", here.event())
        done = at(here, *named, "--context", *where, KUBECONFIG=str(tmp_path / "kubeconfig"))
    assert done.code == 0, done.err
    assert here.evidence in done.out


@pytest.mark.thorough
def test_the_answer_and_then_the_bill_are_printed_and_nothing_else(tmp_path: Path) -> None:
    """Nobody watches, so nothing is told on the way."""
    with site(tmp_path) as here:
        done = at(here, "--workflow", WORKFLOW, "--project", here.project, "--event", here.event())
        assert here.written == []
    assert done.code == 0, done.err
    assert here.evidence in done.out
    assert re.fullmatch(r"Quoted lines: (\d+) checked, \1 found\.", done.out.splitlines()[-2])
    assert done.out.splitlines()[-1].startswith("digest, ")
    assert "$0.0000" in done.out.splitlines()[-1]
    assert done.err == ""


@pytest.mark.thorough
def test_each_answer_of_an_event_is_printed(tmp_path: Path) -> None:
    with site(tmp_path, second=True) as here:
        (tmp_path / "event.json").write_text(json.dumps(here.webhook()))
        done = at(here, "--event-file", str(tmp_path / "event.json"), "--save-session", str(tmp_path / "kept"))
    assert done.code == 0, done.err
    assert done.out.count("\ndigest, ") == 2
    assert f"{WORKFLOW}-{here.iid}" in done.err
    assert f"{LOOKS_TOO}-{here.iid}" in done.err


def test_an_event_that_starts_nothing_is_exit_code_1(tmp_path: Path) -> None:
    with site(tmp_path, trigger="merge_request") as here:
        (tmp_path / "event.json").write_text(json.dumps(here.webhook()))
        done = at(here, "--event-file", str(tmp_path / "event.json"))
    assert done.code == 1
    assert done.err.startswith("hummingbird: Nothing was run: ")
    assert done.out == ""


@pytest.mark.thorough
def test_what_is_executed_is_printed_too_and_where_it_was_posted(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        named = ("--workflow", WORKFLOW, "--project", here.project, "--event", here.event())
        done = at(here, *named, "--execute", **{ORCHESTRATOR: here.scene.write_token})
        assert len(here.notes) == 2
    assert done.code == 0, done.err
    assert here.evidence in done.out
    assert done.err == f"Posted to {here.url}\n"


@pytest.mark.thorough
def test_verbose_shows_decisions_and_results(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        (tmp_path / "event.json").write_text(json.dumps(here.webhook()))
        done = at(here, "--event-file", str(tmp_path / "event.json"), "-v")
    assert "somebody replays the pipeline" in done.err
    assert here.evidence in done.err
    assert here.evidence in done.out


def test_a_run_that_could_read_nothing_says_so_and_fails(config: Path) -> None:
    text = config.read_text().replace("projects: {'*': {}}}", "projects: {'*': {}}, data_sources: {gitlab: {}}}", 1)
    config.write_text(text)
    done = run(config, *NAMED, *EVENT, "--model", "digest")
    assert done.code == 1
    assert "Nothing could be read, so this answer says nothing" in done.err
