"""Tell who wrote the text of a GitLab job log: the runner, or the job's own script.

The runner marks the beginning of each of its stages with `section_start:TIME:STAGE`. A script can print the same
markers, and the lines with which a runner ends a log, so nothing after the first stage of the script proves anything.
What a script cannot do is to write before it begins: a log without any such stage was written by the runner alone.
"""

import re

_MARKER = b"section_start:"
_STAGE = re.compile(rb"[0-9]{1,20}:([a-z_]{1,64})(?=[\r\n\x1b\[])")
_LONGEST = 128  # bytes behind a marker that are enough to read the stage
_FIRST_WITHIN = 64 * 1024  # bytes; a runner marks its first stage in its first lines
# All stages in which a runner runs commands of its own; the steps of a job have names of their own (`step_script`).
RUNNER_STAGES = frozenset((
    b"resolve_secrets", b"prepare_executor", b"prepare_script", b"get_sources", b"clear_worktree", b"restore_cache",
    b"download_artifacts", b"archive_cache", b"archive_cache_on_failure", b"upload_artifacts_on_success",
    b"upload_artifacts_on_failure", b"cleanup_file_variables",
))  # fmt: skip


class RunnerTrace:
    """Feed it the whole log, then ask."""

    def __init__(self) -> None:
        self._rest = b""
        self._read = 0
        self._stages = 0
        self._script_began = False

    def feed(self, chunk: bytes) -> None:
        """Nothing is looked at once the script has begun, or where no runner seems to have written."""
        if self._script_began:
            return
        self._read += len(chunk)
        self._look(self._rest + chunk, ended=False)
        if not self._stages and self._read > _FIRST_WITHIN:
            self._script_began = True

    @property
    def only_runner_wrote(self) -> bool:
        """Whether the log proves that the script never began. False for every log that is not a runner's."""
        if not self._script_began:
            self._look(self._rest, ended=True)
        return not self._script_began and self._stages > 0

    def _look(self, text: bytes, *, ended: bool) -> None:
        at = text.find(_MARKER)
        while at >= 0 and not self._script_began:
            behind = text[at + len(_MARKER) : at + len(_MARKER) + _LONGEST]
            if len(behind) < _LONGEST and not ended:
                break
            stage = _STAGE.match(behind + b"\n" if ended else behind)
            # a stage that cannot be read may be the script's: a secret that is masked may stand in its name
            self._script_began = stage is None or stage[1] not in RUNNER_STAGES
            self._stages += 1
            at = text.find(_MARKER, at + len(_MARKER))
        self._rest = b"" if ended else text[at if at >= 0 else max(0, len(text) - len(_MARKER) + 1) :]
