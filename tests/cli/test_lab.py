"""`hummingbird lab`: what a person types, and what programs then find at the addresses."""

import base64
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gitlab
import httpx2
import pytest

from hummingbird.lab.case import CASES_FOLDER, case_names
from hummingbird.lab.gitlab.webhook_delivery import sign_webhook
from tests.cli.receiving import Receiver
from tests.cli.serving_lab import COMMAND, Lab, run, serving
from tests.lab.ports import free_row
from tests.real_parts import program
from tests.thoroughly import also

ADDRESSES = ("gitlab_url", "konflux_url", "kubearchive_url", "testing_farm_url", "artifacts_url")
SIGNING_TOKEN = "whsec_" + base64.b64encode(bytes(range(32))).decode()
IN_USE = "hummingbird: The case could not be served: Address already in use. Choose other ports with --port.\n"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One that all tests may read from."""
    with serving("out-of-memory") as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


def test_without_a_case_they_are_listed_with_their_titles() -> None:
    done = run()
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == case_names()
    for line in done.stdout.splitlines():
        name, title = line.split(maxsplit=1)
        assert title == json.loads((CASES_FOLDER / name / "case.json").read_text())["title"]
    assert "hummingbird lab NAME" in done.stderr


def test_json_is_one_line_whose_addresses_answer(lab: Lab) -> None:
    assert lab.line.count("\n") == 1
    assert lab.told["case"] == "out-of-memory"
    for name in ADDRESSES:
        assert httpx2.get(lab.told[name] + "/", timeout=60).status_code < 500, name
    event = json.loads(Path(lab.told["event_file"]).read_text())
    assert event["project"]["path_with_namespace"] == lab.told["project"]
    assert event["merge_request"]["iid"] == lab.told["merge_request"]


@pytest.mark.parametrize(("token", "writes"), [("read_token", False), ("write_token", True), ("developer_token", True)])
def test_python_gitlab_reads_and_writes_as_far_as_its_token_may(lab: Lab, token: str, writes: bool) -> None:
    with gitlab.Gitlab(lab.told["gitlab_url"], private_token=lab.told[token]) as client:
        request = client.projects.get(lab.told["project"]).mergerequests.get(lab.told["merge_request"])
        assert request.sha == lab.told["sha"]
        if writes:
            assert request.notes.get(request.notes.create({"body": "Seen."}).id).body == "Seen."
        else:
            with pytest.raises(gitlab.GitlabCreateError, match="403"):
                request.notes.create({"body": "Seen."})


def test_curl_reads_a_log_at_the_address(lab: Lab) -> None:
    builds = json.loads(Path(lab.told["event_file"]).read_text())["builds"]
    [job] = [each["id"] for each in builds if each["status"] == "failed"]
    project = lab.told["project"].replace("/", "%2F")
    address = f"{lab.told['gitlab_url']}/api/v4/projects/{project}/jobs/{job}/trace"
    command = [program("curl"), "-sf", "-H", f"PRIVATE-TOKEN: {lab.told['read_token']}", address]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"Killed signal terminated program cc1plus" in shown


@pytest.mark.thorough
def test_what_the_page_says_to_try_works(lab: Lab) -> None:
    """The line for python-gitlab's own command, with this process's interpreter."""
    words = ["--server-url", lab.told["gitlab_url"], "--private-token", lab.told["read_token"]]
    words += ["project-merge-request", "get", "--project-id", lab.told["project"]]
    words += ["--iid", str(lab.told["merge_request"])]
    done = subprocess.run([sys.executable, "-m", "gitlab", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"iid: {lab.told['merge_request']}" in done.stdout


def test_kubeconfig_files_name_the_cluster(lab: Lab) -> None:
    for name in ("kubeconfig", "kubectl_config"):
        [cluster] = json.loads(Path(lab.told[name]).read_text())["clusters"]
        assert cluster["cluster"]["server"].startswith(lab.told["konflux_url"]), name


@pytest.mark.parametrize(("case", "konflux"), [("konflux-build-and-test", True), also("disk-full", False)])
def test_the_page_for_people_names_what_the_case_has(case: str, konflux: bool) -> None:
    with subprocess.Popen([*COMMAND, case], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        page = "".join(iter(process.stdout.readline, "Press Ctrl-C to stop.\n"))
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    assert page.startswith(json.loads((CASES_FOLDER / case / "case.json").read_text())["title"])
    assert "curl -H 'PRIVATE-TOKEN: lab-read-token' http://127.0.0.1:" in page
    assert [each in page for each in ("Konflux  ", "KubeArchive  ", "Testing Farm  ", "kubectl --")] == [konflux] * 4


@pytest.mark.thorough
@pytest.mark.parametrize("how", [also(signal.SIGINT), signal.SIGTERM])
def test_it_ends_well_and_leaves_nothing_behind(how: signal.Signals) -> None:
    with serving("disk-full") as lab:
        folder = Path(lab.told["event_file"]).parent
        assert folder.is_dir()
        lab.stop(how)
        assert (lab.code, lab.rest, lab.errors) == (0, "", "")
        assert not folder.exists()
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(lab.told["gitlab_url"], timeout=60)


@pytest.mark.thorough
def test_an_event_file_is_written_where_it_was_wanted_and_stays(tmp_path: Path) -> None:
    with serving("merge-request-review", "--event-file", str(tmp_path / "event.json")) as lab:
        assert lab.told["event_file"] == str(tmp_path / "event.json")
        lab.stop()
    assert json.loads((tmp_path / "event.json").read_text())["object_kind"] == "merge_request"


def test_an_event_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    done = run("disk-full", "--event-file", str(tmp_path / "none" / "event.json"))
    assert done.returncode == 2
    assert "No such file or directory. Name another --event-file." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
def test_a_hook_gets_the_event_with_token_and_signature(receiver: Receiver) -> None:
    words = ["--hook", receiver.url, "--hook-token", "secret", "--signing-token", SIGNING_TOKEN]
    with serving("out-of-memory", *words) as lab:
        headers, body = receiver.next()
        assert lab.error_line() == "Pipeline Hook: answered with 200\n"
        assert body == Path(lab.told["event_file"]).read_bytes()
    assert (headers["X-Gitlab-Event"], headers["X-Gitlab-Token"]) == ("Pipeline Hook", "secret")
    stamp = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == sign_webhook(SIGNING_TOKEN, headers["webhook-id"], stamp, body)


@pytest.mark.thorough
def test_a_hook_gets_what_happens_later_too(receiver: Receiver) -> None:
    with serving("disk-full", "--hook", receiver.url) as lab:
        receiver.next()
        with gitlab.Gitlab(lab.told["gitlab_url"], private_token=lab.told["write_token"]) as client:
            project = client.projects.get(lab.told["project"], lazy=True)
            project.mergerequests.get(lab.told["merge_request"], lazy=True).notes.create({"body": "Hello."})
        headers, body = receiver.next()
    assert headers["X-Gitlab-Event"] == "Note Hook"
    assert json.loads(body)["object_attributes"]["note"] == "Hello."


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("url", "why"),
    [("http://127.0.0.1:1/", "did not answer"), also("http://hooks.example.invalid/", "to this machine alone")],
)
def test_a_hook_that_does_not_answer_is_told(url: str, why: str) -> None:
    with serving("disk-full", "--hook", url) as lab:
        assert why in lab.error_line()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--hook", "http://127.0.0.1:1/", "--signing-token", "secret"], "let it begin with whsec_"),
        (["--hook", "http://127.0.0.1:99999/"], "Port out of range"),
        (["--hook-token", "secret"], "are for --hook"),
    ],
)
def test_a_hook_that_cannot_be_used_is_one_sentence(words: list[str], why: str) -> None:
    done = run("disk-full", *words)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("gitlab_url", "401 GET /api/v4/user (nobody)\n"),
        also("kubearchive_url", "archive GET /apis\n"),
        also("artifacts_url", "artifacts GET /x\n"),
    ],
)
def test_verbose_tells_every_request_to_whichever_server(address: str, told: str) -> None:
    path = told.split()[2 if address == "gitlab_url" else -1]
    with serving("disk-full", "--verbose") as lab:
        httpx2.get(lab.told[address] + path, timeout=60)
        assert lab.error_line() == told


def test_an_unknown_case_is_one_sentence_with_the_names() -> None:
    done = run("nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hummingbird: There is no case 'nope': name one of ")
    assert all(name in done.stderr for name in case_names())


@pytest.mark.thorough
def test_a_folder_can_be_served(tmp_path: Path) -> None:
    shutil.copytree(CASES_FOLDER / "disk-full", tmp_path / "mine")
    with serving(str(tmp_path / "mine")) as lab:
        assert (lab.told["case"], lab.told["project"]) == ("mine", "veloren/veloren")


@pytest.mark.thorough
@pytest.mark.parametrize(("file", "text"), [("gitlab/project.json", "{"), ("gitlab/project.json", "{}"), ("x", "")])
def test_a_broken_folder_is_one_sentence(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / "gitlab").mkdir()
    (tmp_path / "case.json").write_text('{"now": "2026-03-02T10:00:00Z"}')
    (tmp_path / file).write_text(text)
    done = run(str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("hummingbird: The case could not be read: ")
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
def test_a_port_is_the_first_of_five_and_taken_ones_are_one_sentence() -> None:
    with serving("disk-full", "--port", str(first := free_row())) as lab:
        assert [lab.told[name] for name in ADDRESSES] == [f"http://127.0.0.1:{first + at}" for at in range(5)]
        second = run("disk-full", "--port", str(first + 4))
        assert (second.returncode, second.stdout, second.stderr) == (2, "", IN_USE)


@pytest.mark.thorough
def test_help_loads_neither_the_lab_nor_python_gitlab() -> None:
    """The lab is loaded for its own help alone, and what only a client needs not even then."""
    lab = ("hummingbird.lab", "hummingbird.cli.lab", "starlette", "uvicorn")
    clients = ("gitlab", "lightkube")
    for words, heavy in ((["--help"], (*lab, *clients)), (["lab", "--help"], clients)):
        code = (
            "import sys, atexit; from hummingbird.cli.main import main\n"
            f"atexit.register(lambda: print('LOADED', [each for each in {heavy!r} if each in sys.modules]))\n"
            "main()"
        )
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert "Usage:" in done.stdout
        assert done.stdout.endswith("LOADED []\n")
