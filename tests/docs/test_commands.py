"""Every command that a document shows would be taken as it stands there, and those that do no harm are really run."""

import gzip
import os
import shutil
from contextlib import chdir
from pathlib import Path

import pytest

from hummingbird.config.loader import FILE_NAME
from hummingbird.config.template import PROMPTS_FOLDER, load_embedded, render_template
from hummingbird.lab.case import find_case
from tests.cli import typing_in
from tests.docs.reading import DOCUMENTS, ROOT, name_of
from tests.docs.typed import PROGRAM, Typed, fault, typed, typed_on_page

HARMLESS = (
    *(("config", verb) for verb in ("check", "explain", "schema")),
    *(("sessions", verb) for verb in ("list", "search", "rebuild")),
    ("explain",),
    ("init",),
    ("queue", "list"),
)
MAY_SAY_NO = {("config", "check"), ("sessions", "search")}  # variables that are not set; words that nobody said
# what they name and is not there: placeholders, a store of somebody's, a file that is broken on purpose
ELSEWHERE = ("[", "…", "PROJECT", "/etc/", "broken.yaml", "|")
SHOWN = {str(one): one for document in DOCUMENTS for one in typed(document)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_that_a_document_shows_would_be_taken(document: Path) -> None:
    faults = {f"line {one.line}: {one}": why for one in typed(document) if (why := fault(one))}
    assert faults == {}


def test_every_command_that_a_page_shows_would_be_taken() -> None:
    shown = {
        (template.name, str(one)): fault(one)
        for template in sorted((ROOT / "src/hummingbird/dashboard/templates").glob("*.html"))
        for one in typed_on_page(template)
    }
    assert {place: why for place, why in shown.items() if why} == {}
    assert len(shown) >= 5, "or it would say yes to what it does not see"


def test_commands_are_found_wherever_they_stand() -> None:
    """Or the test above would say yes to what it does not see."""
    assert len(SHOWN) > 80
    for expected in (
        "hummingbird chat -q - --toolsets workspace",  # behind a pipe
        "hummingbird run --workflow analyze-failures --project acme/widgets --resume-session /tmp/look --message "
        "'Is it the test'\"'\"'s fault?'",  # over two lines
        "hummingbird lab",  # before a remark
        "hummingbird chat -q 'Review this' --toolsets ''",  # with an empty word
        "hummingbird config schema",  # before a redirection
        "make demo",
    ):
        assert expected in SHOWN


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("serve", "--prot", "8080"), "No such option"),
        (("serve", "--port", "99999"), "is not in the range"),
        (("session", "list"), "No such command"),
        (("sessions", "list", "all"), "unexpected extra argument"),
        (("sessions", "search"), "Missing argument"),
    ],
)
def test_a_command_that_would_be_refused_is_a_fault(words: tuple[str, ...], why: str) -> None:
    assert why in fault(Typed(1, (PROGRAM, *words), whole=True))


def test_a_target_that_make_does_not_have_is_a_fault() -> None:
    assert "tets" in fault(Typed(1, ("make", "tets"), whole=True))


def harmless(one: Typed) -> bool:
    words = one.words[1:]
    if one.words[0] != PROGRAM or any(part in word for part in ELSEWHERE for word in words) or fault(one):
        return False
    return words in {("lab",), ("--version",)} or "--help" in words or words[:1] in HARMLESS or words[:2] in HARMLESS


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a newcomer has: the files of `init`, here and in `deploy`, a red and a green log."""
    folder = tmp_path_factory.mktemp("newcomer")
    for place in (folder, folder / "deploy"):
        (place / PROMPTS_FOLDER).mkdir(parents=True)
        (place / FILE_NAME).write_text(render_template(), encoding="utf-8")
        for name, prompt in load_embedded().prompts.items():
            (place / PROMPTS_FOLDER / f"{name}.md").write_text(prompt, encoding="utf-8")
    logs = sorted(find_case("failing-test").folder.glob("logs/*.log"))
    (folder / "job.log").write_bytes(logs[-1].read_bytes())
    (folder / "last-green.log.gz").write_bytes(gzip.compress(logs[0].read_bytes()))
    return folder


@pytest.mark.parametrize("command", sorted(name for name, one in SHOWN.items() if harmless(one)))
def test_commands_that_do_no_harm_are_run(command: str, filled: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(filled, tmp_path / "here")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HUMMINGBIRD_HOME": str(tmp_path / "state")}
    one = SHOWN[command]
    if one.words[1] == "init":
        shutil.rmtree(folder)
        folder.mkdir()
    with chdir(folder):
        done = typing_in.typed(*one.words[1:], environment=environment, piped=(filled / "job.log").read_bytes())
    told = done.out + done.err
    assert "Traceback" not in told
    assert done.code in ({0, 1} if one.words[1:3] in MAY_SAY_NO else {0}), told
    assert told.strip()
