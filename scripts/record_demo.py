"""Makes the demo's recording: a scripted model, the real loop and tools. Run it after changing either.

.venv/bin/python scripts/record_demo.py
"""

import asyncio
import tempfile
from pathlib import Path

from hummingbird.adapters.stores.journal import FileJournal
from hummingbird.assembly.demo import CASE, investigate
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, ToolCall
from hummingbird.domain.usage import Usage
from hummingbird.lab.scripted import ScriptedModel
from hummingbird.ports.model import ModelReply

REPORT = """\
## Not caused by this change: the provider registry did not answer

`TestProviderTampering/cache_dir_totally_gone` failed because `terraform init` could not download a provider, not
because of what it tests:

    188: providers_tamper_test.go:76: unexpected init error: exit status 1
    191: Error: Failed to install provider
    193: Error while installing hashicorp/null v3.1.0: Get
    194: "https://releases.hashicorp.com/terraform-provider-null/3.1.0/terraform-provider-null_3.1.0_windows_amd64.zip":
    195: net/http: TLS handshake timeout

The download timed out in the TLS handshake, before any code of the change could matter. The seven other cases of the
same test passed in the same run.

**Verdict:** infrastructure. **What to do:** run the job again; if it recurs, let the test use a local mirror.

**Not looked at:** the diff of the merge request and earlier runs of this job; only this log was available.
"""


LINES = [
    ModelReply(
        AssistantMessage(
            "The end of a Go test log names the failing test; I look for it first.",
            calls=(ToolCall("demo1", "search_log", '{"pattern":"FAIL|##\\\\[error\\\\]"}'),),
        ),
        Finish.STOP,
        Usage(12, 0, 1180, 61),
    ),
    ModelReply(
        AssistantMessage(
            "One subtest failed. Its output stands just before the summary.",
            calls=(
                ToolCall("demo2", "read_log", '{"first":184,"last":206}'),
                ToolCall("demo3", "search_log", '{"pattern":"--- PASS: TestProviderTampering/"}'),
            ),
        ),
        Finish.STOP,
        Usage(6, 1180, 240, 84),
    ),
    ModelReply(AssistantMessage(REPORT), Finish.STOP, Usage(6, 1420, 1890, 312)),
]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        journal = FileJournal(path)
        model = ScriptedModel(LINES, name="scripted:demo")
        outcome = await investigate(model, journal, "recorded-demo")
        model.assert_consumed()
        journal.close()
        (CASE / "journal.jsonl").write_bytes(path.read_bytes())
    print(outcome.text)  # noqa: T201 - a script for developers


if __name__ == "__main__":
    asyncio.run(main())
