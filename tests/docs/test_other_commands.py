"""Commands of others that documents show: nothing is run, but each is one that its program has, and what it names of
ours is there."""

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.reading import DOCUMENTS, ROOT, blocks
from tests.docs.typed import shown_lines

VERBS = {
    "kubectl": {
        "apply",
        "create",
        "diff",
        "exec",
        "get",
        "label",
        "logs",
        "rollout",
        "scale",
        "delete",
        "port-forward",
    },
    "podman": {"build", "push", "run", "login", "pull"},
    "aws": {"cloudformation", "sqs", "s3", "s3api"},
    "pip": {"install"},
}
WITH_VALUES = {"-n", "--namespace", "-f", "-k", "-t"}
YOURS = "deploy/kubernetes/overlays/acme"  # which the reader makes of overlays/example
_NAME = re.compile(r"hummingbird-agent(?:\[(?P<extras>[\w,-]+)\])?")


def commands() -> Iterator[tuple[Path, tuple[str, ...]]]:
    for document in DOCUMENTS:
        for block in blocks(document):
            for _, line in shown_lines(block.text):
                program = line.split(" ", 1)[0]
                if program in VERBS:
                    yield document, tuple(shlex.split(line.split("  #")[0]))


FOUND = [pytest.param(words, id=f"{document.name}: {shlex.join(words)[:60]}") for document, words in commands()]


def before_dashes(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[: words.index("--")] if "--" in words else words


def verb(words: tuple[str, ...]) -> str:
    behind = iter(before_dashes(words)[1:])
    return next((word for word in behind if not (word in WITH_VALUES and next(behind, "")) and word[0] != "-"), "")


def deployments() -> set[str]:
    documents = [
        one for file in (ROOT / "deploy/kubernetes/base").glob("*.yaml") for one in yaml.safe_load_all(file.read_text())
    ]
    return {one["metadata"]["name"] for one in documents if one and one.get("kind") == "Deployment"}


def faults(words: tuple[str, ...]) -> list[str]:
    program, said = words[0], before_dashes(words)
    found = [] if verb(words) in VERBS[program] else [f"{program} has no {verb(words)!r}"]
    for word in said[1:]:
        kind, _, name = word.partition("/")
        if program == "kubectl" and kind in {"deploy", "deployment"} and "/" not in name and "." not in name:
            found += [] if name in deployments() else [f"there is no Deployment {name}"]
        elif word.startswith("deploy/") and word != YOURS and not (ROOT / word).exists():
            found.append(f"there is no {word}")
        elif program == "pip" and (agent := _NAME.fullmatch(word)) and agent["extras"]:
            known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            found += [f"there is no extra {one}" for one in agent["extras"].split(",") if one not in known]
    return found


@pytest.mark.parametrize("words", FOUND)
def test_a_command_of_others_is_one_and_names_what_is_there(words: tuple[str, ...]) -> None:
    assert faults(words) == []


@pytest.mark.parametrize(
    "broken",
    [
        "kubectl aply -k deploy/kubernetes/base",
        "kubectl apply -k deploy/kubernetes/none",
        "kubectl -n hummingbird rollout status deployment/humingbird",
        "podman build -f deploy/Dockerfile -t x .",
        "pip install 'hummingbird-agent[otl]'",
    ],
)
def test_one_that_is_wrong_is_noticed(broken: str) -> None:
    assert faults(tuple(shlex.split(broken)))


def test_they_are_found_and_their_programs_know_their_verbs() -> None:
    assert {words.values[0][0] for words in FOUND} >= {"kubectl", "podman", "aws", "pip"}  # type: ignore[index]  # words
    for program in ("kubectl", "podman"):
        if shutil.which(program):
            told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
            assert [one for one in sorted(VERBS[program]) if not re.search(rf"^\s+{one}\s", told, re.MULTILINE)] == []
