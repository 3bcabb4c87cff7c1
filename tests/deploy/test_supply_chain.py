"""What the image is made of is pinned by its contents: base images by digest, packages and pip by hash."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
IMAGES = (ROOT / "deploy" / "base-images.env").read_text(encoding="utf-8")
DIGEST = "sha256:" + "0123456789abcdef" * 4
BASE, KUBECTL = "docker.io/library/python:3.13-slim", "registry.k8s.io/kubectl:v1.33.5"
LOCKS = [*ROOT.glob("requirements/*.lock"), *ROOT.glob("deploy/extras/*.lock")]
_PIN = re.compile(r"[A-Za-z0-9._-]+(?:\[[^\]]*\])?==[^\s;]+(?: ; [^\\]+)?(?: \\\n {4}--hash=sha256:[0-9a-f]{64})+\n")


def check_digests(base: str, kubectl: str) -> subprocess.CompletedProcess[str]:
    """Run the check of the Containerfile as the build would."""
    found = re.search(r"^RUN (for image in .*?done)$", CONTAINERFILE, re.MULTILINE | re.DOTALL)
    assert found is not None
    given = {"BASE": base, "KUBECTL": kubectl, "PATH": "/usr/bin:/bin"}
    return subprocess.run(["sh", "-c", found[1]], env=given, capture_output=True, text=True, check=False, timeout=60)


def test_images_named_by_digest_are_taken() -> None:
    done = check_digests(f"{BASE}@{DIGEST}", f"registry.k8s.io/kubectl@{DIGEST}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("base", "kubectl", "named"),
    [
        (BASE, f"{KUBECTL}@{DIGEST}", "BASE"),
        (f"{BASE}@{DIGEST}", KUBECTL, "KUBECTL"),
        (f"{BASE}@{DIGEST}", "", "KUBECTL"),
        (f"{BASE}@sha256:0123", f"{KUBECTL}@{DIGEST}", "BASE"),
        (f"{BASE}@{DIGEST}@latest", f"{KUBECTL}@{DIGEST}", "BASE"),
        (f"@{DIGEST}", f"{KUBECTL}@{DIGEST}", "BASE"),
    ],
    ids=["base-by-tag", "kubectl-by-tag", "nothing", "short", "something-behind", "no-name"],
)
def test_an_image_that_is_not_named_by_digest_is_refused(base: str, kubectl: str, named: str) -> None:
    done = check_digests(base, kubectl)
    assert done.returncode != 0
    assert f"{named}=" in done.stderr


def test_every_stage_begins_with_an_image_that_is_checked() -> None:
    stages = re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)
    assert set(stages) == {"${BASE}", "${KUBECTL}"}
    assert not re.search(r"^ARG (?:BASE|KUBECTL)=", CONTAINERFILE, re.MULTILINE), "a default would be a tag"


def test_pip_itself_is_pinned_before_it_installs_anything() -> None:
    calls = re.findall(r"tools/bin/pip .*?(?:install|uninstall) [^&|;\\\n]*", CONTAINERFILE)
    assert calls[0] == "tools/bin/pip install --no-deps --require-hashes -r pip.lock "
    assert all("--no-deps" in each for each in calls if " install " in each)
    assert "!requirements/pip.lock\n" in (ROOT / ".dockerignore").read_text(encoding="utf-8")
    assert re.match(r"pip==", (ROOT / "requirements" / "pip.lock").read_text(encoding="utf-8"))


def test_whoever_installs_a_lock_resolves_nothing() -> None:
    """pip 23 looks at a newer release before the pinned one where a dependency asks for extras, and gives up."""
    users = ["Makefile", "deploy/Containerfile", "tests/deploy/agent_image.py", "benchmarks/rivals/setup.py"]
    for user in users:
        text = (ROOT / user).read_text(encoding="utf-8")
        assert text.count("--require-hashes") == len(re.findall(r"--no-deps\W+--require-hashes", text)) > 0, user


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_holds_names_versions_and_hashes_alone(lock: Path) -> None:
    assert _PIN.sub("", lock.read_text(encoding="utf-8")) == ""


def test_renovate_finds_each_image_and_writes_its_digest() -> None:
    """As its regular expressions do it, which spell named groups in another way."""
    text = IMAGES
    managers = json.loads((ROOT / "renovate.json").read_text(encoding="utf-8"))["customManagers"]
    for manager in (each for each in managers if "base-images" in each["managerFilePatterns"][0]):
        [pattern], template = manager["matchStrings"], manager["autoReplaceStringTemplate"]
        expression = re.compile(pattern.replace("(?<", "(?P<"))
        [found] = expression.finditer(text)
        filled = template.replace("{{#if newDigest}}", "").replace("{{/if}}", "")
        values = {"depName": found["depName"], "newValue": found["currentValue"], "newDigest": DIGEST}
        for name, value in values.items():
            filled = filled.replace("{{{" + name + "}}}", value)
        text = text.replace(found[0], filled)
        [again] = expression.finditer(text)
        assert again["currentDigest"] == DIGEST
    assert IMAGES.count("@sha256:") in (0, 2)
    given = dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
    assert check_digests(given["BASE"], given["KUBECTL"]).returncode == 0
