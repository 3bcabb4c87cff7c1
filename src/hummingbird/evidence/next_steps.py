"""Say what to do about a failure: by the rule that recognised it, else by whose failure it is.

Every sentence is an instruction to the author of a merge request, who may not know the machine that ran the job.
"""

from collections.abc import Mapping

from hummingbird.core.verdicts import FailureOrigin

GENERAL_STEPS: Mapping[FailureOrigin, str] = {
    FailureOrigin.CHANGE: "Fix it in this merge request.",
    FailureOrigin.TARGET: "Leave this merge request as it is; when the target branch is fixed, rebase.",
    FailureOrigin.FLAKY: "Retry the job, and report the test as flaky if nobody has done so yet.",
    FailureOrigin.INFRASTRUCTURE: "Retry the job. If it fails again like this, tell the runner's administrator.",
    FailureOrigin.UNKNOWN: "Open the log of the job. If your change has nothing to do with it, retry the job once.",
}
"""What to do where nothing more exact is known."""

_MEMORY = "Retry the job. If it is killed again, it needs a runner with more memory, or fewer processes at once."
_DISK = (
    "Retry the job: another runner may have room. If its disk is full again, ask the runner's administrator for space."
)
_NETWORK = "Retry the job. If it fails again like this, tell the runner's administrator what could not be reached."
_REGISTRY = "Retry the job. If it fails again, find out whether the registry is up and the name of the image is right."

_TEMPORARY: Mapping[str, str] = {
    "out-of-memory": _MEMORY,
    "killed-from-outside": _MEMORY,
    "exit-killed": _MEMORY,
    "test-out-of-memory": _MEMORY,
    "heap-exhausted": "Give the program more memory, or find out why it needs more than before.",
    "disk-full": _DISK,
    "disk-full-at-start": _DISK,
    "test-disk-full": _DISK,
    "pod-never-started": "Retry the job when the cluster has room. If it has none for long, tell the runner's "
    "administrator.",
    "dns-failure": _NETWORK,
    "tls-failure": _NETWORK,
    "server-error": _NETWORK,
    "connection-reset": _NETWORK,
    "connection-timed-out": _NETWORK,
    "connection-refused": "Find out whether the service was started and listens where the job expects it; else "
    "retry the job.",
    "source-fetch-failed": _NETWORK,
    "package-download-failed": _NETWORK,
    "git-objects-missing": "Retry the job. If it needs more history than the runner fetches, raise `GIT_DEPTH`.",
    "package-mirror-failed": "Retry the job later. If the mirror stays broken, tell whoever runs it, or use another "
    "one.",
    "certificate-refused": "Find out whether the certificate has expired; else retry the job.",
    "image-pull-failed": _REGISTRY,
    "rate-limited": "Retry the job in some minutes. If it happens often, log in to that service or use a mirror.",
    "docker-daemon-gone": "Retry the job. If it fails again, look at the job's `services` and at the runner's Docker.",
    "artifacts-not-moved": "Retry the job, after the one that makes the files if they have expired.",
    "job-timed-out": "Look at what ran last. If it only was slow, retry the job, or raise its `timeout`.",
    "gitlab-job-execution-timeout": "Look at what ran last. If it only was slow, retry the job, or raise its "
    "`timeout`.",
    "quota-used-up": "Ask whoever owns the account for more quota; a retry does not help before.",
}

# What somebody has to change, whoever caused it.
_SETTINGS: Mapping[str, str] = {
    "command-not-found": "Install the command in the job's image, or correct its name in the job's script.",
    "tool-part-missing": "Install what is missing in the job's image.",
    "target-missing": "Correct the name of the target, or add it to the build files.",
    "unknown-option": "Correct the option, or use the version of the tool that knows it.",
    "variable-missing": "Set the variable in the project's CI/CD settings; protected ones are missing on other "
    "branches.",
    "pipeline-file-invalid": "Correct the file that cannot be read.",
    "image-not-found": "Correct the name and tag of the image, or give the job the right to read it.",
    "credential-refused": "Renew the token or password that the job uses; protected variables are missing on other "
    "branches.",
    "push-rejected": "Find out whether the job's token may push to that branch, and whether somebody pushed in "
    "between.",
    "wrong-version": "Use the version that the project needs in the job's image, or change what it needs.",
    "lock-file-stale": "Renew the lock file and commit it.",
    "dependency-unresolvable": "Correct the version of the dependency that is asked for.",
    "apt-lists-stale": "Renew the package lists (`apt-get update`) in the same step that installs.",
    "vulnerable-dependency": "Update the dependency that is named, or record why its finding does not matter.",
    "branch-gone": "Push the branch or tag again, or start a pipeline for the newest commit.",
    "too-large-to-upload": "Upload less, or ask the administrator to raise the limit.",
    "log-too-long": "Print less, or write it to an artifact.",
    "not-formatted": "Run the formatter and push what it changes.",
    "coverage-too-low": "Add tests for what is new, or lower the threshold.",
    "gitlab-missing-dependency-failure": "Run the job again that makes the artifacts, then this one.",
    "gitlab-trace-size-exceeded": "Print less, or write it to an artifact.",
}


def rule_step(rule: str, *, of_change: bool = False) -> str:
    """Return what to do about a failure that this rule recognised; "" if that depends on whose it is.

    For a failure that a merge request caused, advice to try again is left out.
    """
    found = _SETTINGS.get(rule, "")
    return found if found or of_change else _TEMPORARY.get(rule, "")
