"""`hummingbird eval` on cases served on this machine, with an environment that holds nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from hummingbird.lab.case import CASES_FOLDER, case_names, find_case
from tests.cli.typing_in import Typed, typed
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

COMMAND = [sys.executable, "-m", "hummingbird", "eval"]
CLAUDE = "anthropic:claude-sonnet-5-5"
FINDING = {"file": "src/ledger/statements.py", "line": 27, "severity": "major", "text": "The last page is lost."}
ANSWER = """The runner cannot find GitLab; this merge request did not do it. Run the job again.

### 1. The name of GitLab's host does not resolve
**Verdict:** infrastructure, not caused by this merge request
**Breaks:** docker

```
fatal: unable to access 'https://gitlab.com/veloren/veloren.git/': Could not resolve host: gitlab.com
```
"""


def evaluated(*arguments: str, cwd: Path, **variables: str) -> Typed:
    """In this process: starting one takes longer than most of what is tried here."""
    with chdir(cwd):
        return typed("eval", *arguments, environment={"HOME": "/nonexistent", **variables})


def told(done: Typed) -> list[dict[str, Any]]:
    assert "Traceback" not in done.err, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def vendor(lab: VendorLab) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}


def test_a_case_is_run_and_scored_without_a_key_or_a_network(tmp_path: Path) -> None:
    done = evaluated("compiler-error", "--json", cwd=tmp_path)
    run, model = told(done)
    assert done.code == 0
    assert "[1/1] compiler-error, digest: " in done.err
    assert run.keys() == {
        *("kind", "case", "model", "workflow", "number", "replayed", "failed", "score", "scores"),
        *("usd", "tokens_in", "tokens_out", "cache_share", "seconds", "turns"),
    }
    assert (run["kind"], run["case"], run["model"], run["failed"]) == ("run", "compiler-error", "digest", None)
    assert run["scores"].keys() == {
        *("verdict", "caused_by_change", "stated", "cause_found", "evidence", "findings", "findings_extra"),
        *("claims", "claims_false", "fared", "must_not", "rules"),
    }
    assert run["scores"]["verdict"] == ["right"]
    assert (run["scores"]["cause_found"], run["scores"]["evidence"], run["scores"]["claims_false"]) == (1.0, 1.0, 0)
    assert (model["kind"], model["runs"], model["score"]) == ("model", 1, run["score"])
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_hostile_case_is_not_obeyed(tmp_path: Path) -> None:
    run, _ = told(evaluated("hostile", "--json", cwd=tmp_path))
    assert run["scores"]["must_not"] == []
    assert run["score"] > 0.9


@pytest.mark.thorough
def test_two_models_stand_side_by_side_and_only_one_of_them_is_wrong(tmp_path: Path) -> None:
    script = Script([Turn(calls=(Call("gitlab_get_pipeline_jobs", {"pipeline_id": 1}),)), Turn(text="All is well.")])
    with VendorLab(script) as lab:
        done = evaluated("network", "--model", "digest", "--model", CLAUDE, cwd=tmp_path, **vendor(lab))
        script.assert_consumed()
    assert done.code == 0, done.err
    rows = [line for line in done.out.splitlines() if line.startswith("| `network`")]
    assert "right | right | 1.00 | 1.00" in rows[0]
    assert "abstains | abstains | 0.00 | 0.00" in rows[1]
    assert [line.split("|")[1].strip() for line in done.out.splitlines()[-2:]] == ["`digest`", f"`{CLAUDE}`"]


@pytest.mark.thorough
def test_a_model_is_scored_recorded_and_replayed_without_it(tmp_path: Path) -> None:
    """Its costs stay those of the recording."""
    pipeline = find_case("network").description["event"]["pipeline"]
    job = json.loads((CASES_FOLDER / "network/gitlab/jobs.json").read_text())
    number = next(one["id"] for one in job if one["status"] == "failed")
    script = Script(
        [
            Turn(calls=(Call("gitlab_get_pipeline_jobs", {"pipeline_id": pipeline}),)),
            Turn(calls=(Call("gitlab_get_job_log", {"job_id": number}),)),
            Turn(text=ANSWER),
        ]
    )
    with VendorLab(script) as lab:
        done = evaluated(
            "network", "--model", CLAUDE, "--record", "runs", "--max-usd", "5", "--json", cwd=tmp_path, **vendor(lab)
        )
        script.assert_consumed()
    run, _ = told(done)
    assert run["scores"]["stated"] == [{"verdict": "infrastructure", "caused_by_change": False}]
    assert (run["score"], run["scores"]["claims"], run["scores"]["claims_false"]) == (1.0, 1, 0)
    assert run["usd"] > 0
    kept = (tmp_path / "runs/network/anthropic_claude-sonnet-5-5/journal.jsonl").read_text()
    assert "http://127.0.0.1" not in kept
    again = evaluated("network", "--replay", "--recordings", "runs", "--json", cwd=tmp_path)
    replayed, _ = told(again)
    same = ("score", "scores", "usd", "tokens_in", "tokens_out", "seconds", "model", "turns")
    assert {key: replayed[key] for key in same} == {key: run[key] for key in same}
    assert replayed["replayed"]
    refused = evaluated("network", "--model", CLAUDE, "--record", "runs", cwd=tmp_path, ANTHROPIC_API_KEY="k")
    assert refused.code == 2
    assert "was recorded before" in refused.err


@pytest.mark.thorough
def test_a_review_is_scored_by_its_findings(tmp_path: Path) -> None:
    other = FINDING | {"line": 29, "text": "Another matter.", "file": "tests/test_statements.py"}
    calls = (Call("report_finding", FINDING), Call("report_finding", other))
    script = Script([Turn(calls=calls), Turn(text="Two findings.")])
    with VendorLab(script) as lab:
        run, _ = told(evaluated("merge-request-review", "--model", CLAUDE, "--json", cwd=tmp_path, **vendor(lab)))
    assert run["workflow"] == "code-review"
    assert run["scores"]["findings"] == 1.0


@pytest.mark.thorough
def test_the_shipped_recordings_run_as_they_did(tmp_path: Path) -> None:
    """Where this fails because a tool or the task says something else now, record them again: `hummingbird eval CASE
    --model MODEL --record DIR`, and put what is in DIR/CASE to `recordings` of the case."""
    done = evaluated("--replay", "--json", "--fail-under", "0.9", cwd=tmp_path)
    assert done.code == 0, done.out + done.err
    recorded = [name for name in case_names() if (CASES_FOLDER / name / "recordings").is_dir()]
    assert recorded
    runs = [one for one in told(done) if one["kind"] == "run"]
    assert [one["case"] for one in runs if one["failed"] is None] == recorded


@pytest.mark.thorough
def test_a_replay_that_departs_is_told_and_scores_nothing(tmp_path: Path) -> None:
    mine = tmp_path / "network"
    shutil.copytree(CASES_FOLDER / "network", mine)
    log = next((mine / "logs").iterdir())
    log.write_text(log.read_text() + "One line more.\n")
    done = evaluated(str(mine), "--replay", "--json", cwd=tmp_path)
    run, model = told(done)
    assert done.code == 1
    assert "departed from the recording" in run["failed"]
    assert str(mine / "recordings/digest/journal.jsonl") in done.err
    assert (run["score"], run["scores"], model["failed"]) == (0.0, None, 1)


@pytest.mark.thorough
def test_a_score_below_what_is_wanted_is_exit_code_1(tmp_path: Path) -> None:
    done = evaluated("network", "merge-request-review", "--fail-under", "0.9", cwd=tmp_path)
    assert done.code == 1
    assert "is below --fail-under 0.9" in done.err
    assert "## Together" in done.out


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("case.json", "{", "case.json of the case network is not JSON"),
        ("case.json", "[]", "case.json of network says no event"),
        (
            "case.json",
            '{"now": "2024-01-01T00:00:00Z", "event": {}}',
            "event.kind is neither pipeline nor merge_request",
        ),
        ("gitlab/jobs.json", "{", "gitlab/jobs.json of the case network is not JSON"),
        ("gitlab/project.json", "{}", "something is missing in it"),
    ],
)
def test_a_broken_case_is_one_sentence_and_the_others_go_on(file: str, content: str, said: str, tmp_path: Path) -> None:
    mine = tmp_path / "cases" / "network"
    shutil.copytree(CASES_FOLDER / "network", mine)
    (mine / file).write_text(content)
    done = evaluated(str(tmp_path / "cases"), "compiler-error", "--json", cwd=tmp_path)
    broken, other, model = told(done)
    assert done.code == 0
    assert said in broken["failed"]
    assert (other["case"], other["failed"], model["failed"]) == ("compiler-error", None, 1)


@pytest.mark.thorough
def test_a_model_that_cannot_be_asked_is_not_scored_as_rules(tmp_path: Path) -> None:
    script = Script([Turn(text="")] * 20)
    with VendorLab(script) as lab:
        run, _ = told(evaluated("network", "--model", CLAUDE, "--json", cwd=tmp_path, **vendor(lab)))
    assert run["failed"]
    assert run["scores"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nope",), "There is no case 'nope': name one of compiler-error"),
        (("--model", "nope"), "nope"),
        (("--workflow", "nope"), "There is no workflow 'nope'"),
        (("--replay", "--record", "x"), "exclude each other"),
        (("--recordings", "."), "--recordings is for --replay"),
        (("--replay", "--max-usd", "1"), "costs nothing"),
        (("--replay", "--recordings", "nowhere"), "None of these cases has a recording in nowhere"),
        (("--fail-under", "2"), "range"),
    ],
)
def test_bad_usage_is_one_sentence_before_anything_runs(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = evaluated(*arguments, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


@pytest.mark.thorough
def test_ctrl_c_gives_what_there_is_so_far(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "network", "--repeat", "50", "--json"],
        cwd=tmp_path,
        env={"HOME": "/nonexistent"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("[1/50] network, digest: ")
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted: " in err
    *runs, model = [json.loads(line) for line in out.splitlines()]
    assert 1 <= len(runs) == model["runs"] < 50


@pytest.mark.thorough
def test_the_real_gitlabs_tokens_never_reach_the_stand_in(tmp_path: Path) -> None:
    real = "glpat-the-real-one-0123456789"
    done = evaluated("network", "-v", "--record", "runs", cwd=tmp_path, ORCHESTRATOR_GITLAB_TOKEN=real)
    assert done.code == 0, done.err
    assert real not in done.out + done.err + (tmp_path / "runs/network/digest/journal.jsonl").read_text()


@pytest.mark.thorough
def test_a_case_that_expects_nothing_is_told_so_and_counts_in_no_mean(tmp_path: Path) -> None:
    mine = tmp_path / "unsaid"
    shutil.copytree(CASES_FOLDER / "odd-corners", mine)
    with VendorLab(Script([Turn(text="Nothing to report.")] * 3)) as lab:
        done = evaluated(str(mine), "network", "--model", CLAUDE, "--json", cwd=tmp_path, **vendor(lab))
        alone = evaluated(str(mine), "--model", CLAUDE, "--fail-under", "0.5", cwd=tmp_path, **vendor(lab))
    unsaid, other, model = told(done)
    assert unsaid["score"] is None
    assert model["score"] == other["score"]
    assert f"unsaid, {CLAUDE}: not scored" in done.err
    assert alone.code == 1
    assert "Nothing was scored: say in `expected` of a case.json what a good answer finds." in alone.err
    assert "not scored: `expected` of its case.json says nothing" in alone.out
