"""A model that lies, and what is left of it in the note: from the webhook to what people read."""

from pathlib import Path

from hummingbird.core.journal import RunEnded
from hummingbird.evidence.citations.claims import REMOVED_QUOTATION
from hummingbird.evidence.citations.quote_checks import PRINTED_LABEL, REMOVED_LINE
from hummingbird.evidence.citations.references import NOT_FOUND_MARK
from tests.journeys.service.stage import staged
from tests.standins.vendors.script import Call, Turn

LOG = "/tmp/data/_out/gitlab_get_job_log_1.log"
LOOKED = [
    Turn(
        calls=(
            Call("gitlab_get_pipeline_jobs", {"pipeline_id": 9011}),
            Call("gitlab_get_mr_unified_diff", {"mr_iid": 11}),
            Call("gitlab_get_job_log", {"job_id": 70011}),
        )
    ),
    Turn(
        calls=(
            Call("sandbox_exec", {"command": f"sed -n '100,104p' {LOG}"}),
            Call("sandbox_exec", {"command": "echo 'ERROR: the database melted at three'"}),
        )
    ),
]
TRUE = "242: LogDifferTest > testGithubParsing() FAILED"
LIES = f"""\
The parser broke, see [the job](ADDRESS/labri-progress/cidiff/-/jobs/70011), not [this one](ADDRESS/x/-/jobs/1) nor
[that log](https://logs.example.org/70011?for=you). The runner's own words are at https://status.example.org/now too.

```
{TRUE}
240: FAILURE: Build failed with an exception.
245: java.lang.OutOfMemoryError: heap space was exhausted
```

```text
ERROR: the database melted at three
```

```
Killed by the kernel: out of memory
```

It is `LogDifferTest.java:61` that fails, because of `cidiff/src/main/java/fr/labri/cidiff/LogParser.java:30` and
`LogParser.java:9000`. The job `deploy-to-the-moon` failed as well.

```java
return new LogLine("", line);  // as before
```
"""


STRICT = {"analyze-failures": {"trigger": "pipeline", "citations": "strict"}}


async def test_each_lie_is_caught_in_the_note_and_what_is_true_stands(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, workflows=STRICT, turns=[], begin=False) as stage:
        address = stage.scene.url("gitlab")
        lies = LIES.replace("ADDRESS", address)
        stage.script.extend(*LOOKED, Turn(text=lies))
        await stage.serve()
        await stage.begin_case()
        _, result = await stage.notes(2)
        entries = stage.entries(result.session)
    body = result.body
    assert f"[the job]({address}/labri-progress/cidiff/-/jobs/70011)" in body
    assert "this one nor" in " ".join(body.split())
    assert "x/-/jobs/1" not in body
    assert "https://logs.example.org/70011?for=you`" in body, "shown as text: it could carry data away"
    assert "](https://logs.example.org" not in body
    assert "https://status.example.org/now" in body
    assert f"{TRUE}\n243: FAILURE: Build failed with an exception.\n{REMOVED_LINE}\n```" in body
    assert f"{PRINTED_LABEL}\n\n```text\nERROR: the database melted at three\n```" in body
    assert REMOVED_QUOTATION in body
    assert "OutOfMemoryError" not in body
    assert "Killed by the kernel" not in body
    assert "`LogDifferTest.java:61` that fails" in body
    assert "LogParser.java:30` and" in body
    assert f"`LogParser.java:9000`{NOT_FOUND_MARK}" in body
    assert f"The job `deploy-to-the-moon`{NOT_FOUND_MARK}" in body
    assert 'return new LogLine("", line);  // as before' in body
    footer = body[body.index("Looked at:") :]
    assert "Looked at: the log of `build-test-deploy`; the diff (1 file)" in footer
    assert "Quoted lines: 5 checked, 2 found, 1 printed by commands alone, 2 removed" in footer
    assert "1 given another number or none" in footer
    assert "2 places and jobs marked as not found and 2 links taken out." in footer
    kept = next(one.text for one in entries if isinstance(one, RunEnded))
    assert kept.strip() == lies.strip()
