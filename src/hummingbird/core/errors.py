"""Define every error that Hummingbird raises on purpose, sorted by who must act.

Every message is a sentence that says what to do. The class docstrings say when each error is raised.

HummingbirdError
├── OperatorError               the person who runs Hummingbird must change something
│   ├── UsageError
│   ├── UnknownModel
│   ├── MissingSetting
│   ├── ConfigurationError
│   ├── ToolDefinitionError
│   ├── SessionUnreadable
│   ├── EventUnreadable
│   ├── InputUnreadable
│   ├── SandboxUnavailable
│   ├── ClusterUnusable
│   ├── CredentialRefused
│   └── CreditExhausted
├── ModelMistake                the model must act: it reads the message as a tool result
│   ├── UnknownTool
│   ├── ArgumentsInvalid
│   ├── CommandFailed
│   ├── CallDenied
│   └── CallTimedOut
├── SourceError                 a data source did not deliver: the model reads the message and may ask another source
│   ├── SourceNotFound
│   ├── SourceRefused
│   ├── SourceUnavailable
│   └── SourceResponseInvalid
├── GitLabWriteError            the write side of GitLab: the worker tries again later, or reports it in the thread
│   ├── GitLabNotFound
│   ├── GitLabRequestRefused
│   ├── GitLabUnavailable
│   │   └── GitLabRateLimited
│   └── GitLabWriteUncertain
├── ProviderError               the model provider failed: the recovery table decides
│   ├── ProviderUnavailable
│   │   ├── ProviderTimeout
│   │   ├── ProviderConnectionLost
│   │   ├── ProviderUnreachable
│   │   └── ProviderReplyUnreadable
│   ├── ProviderRequestRefused
│   ├── ContextOverflow
│   └── ThinkingRefused
├── RunFailed                   a run ended without an answer: the program that started it decides
└── PlatformError               our own machine or code
    ├── InvalidRequest
    ├── JournalDamaged
    ├── JournalUnwritable
    │   ├── JournalWriteDelayed
    │   └── SessionTaken
    ├── SandboxBroken
    ├── ArchiveTooLarge
    ├── ArchiveUnusable
    ├── ObjectStoreUnusable
    ├── QueueUnusable
    ├── CompactionFailed
    │   └── CompactionUnaffordable
    ├── ReceiptExpired
    └── ReplayMismatch
"""

from importlib.util import find_spec

from hummingbird.core.text import replace_surrogates


class HummingbirdError(Exception):
    """Root of all errors that Hummingbird raises on purpose."""


class OperatorError(HummingbirdError):
    """The person who runs Hummingbird must change something."""


class UsageError(OperatorError):
    """An argument or option makes no sense."""


class UnknownModel(OperatorError):
    """There is no such model, provider or mode."""


class MissingSetting(OperatorError):
    """A key, region or project is not set."""


class ConfigurationError(OperatorError):
    """The configuration file has faults.

    `faults` holds one sentence per fault; the error's own message contains them all.
    """

    def __init__(self, sentence: str, faults: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.faults = faults


class ToolDefinitionError(OperatorError):
    """A tool's schema, name or description is unusable."""


class SessionUnreadable(OperatorError):
    """A journal has a newer format, or is not a journal of ours."""


class EventUnreadable(OperatorError):
    """A webhook's body is not a GitLab event."""


class InputUnreadable(OperatorError):
    """A log, report or baseline does not exist, may not be read, or is not text."""


class SandboxUnavailable(OperatorError):
    """This machine cannot offer the sandbox that was asked for."""


class ClusterUnusable(OperatorError):
    """A kubeconfig, its context or its credentials cannot be used."""


class CredentialRefused(OperatorError):
    """A provider answered 401 or 403, or a data source's token is expired or too narrow."""


class CreditExhausted(OperatorError):
    """A provider answered 402, or reports no quota or no prepaid credit."""


class ModelMistake(HummingbirdError):
    """The model must act; it reads the message as a tool result."""


class UnknownTool(ModelMistake):
    """The model called a tool that does not exist."""


class ArgumentsInvalid(ModelMistake):
    """The model called a tool with arguments that its schema does not allow."""


class CommandFailed(ModelMistake):
    """A command or file operation inside the sandbox failed, while the sandbox itself works."""

    def __init__(self, sentence: str, exit_code: int | None = None) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class CallDenied(ModelMistake):
    """A hook, a rule or a person denied the call."""


class CallTimedOut(ModelMistake):
    """A tool that another tool called took too long."""


class SourceError(HummingbirdError):
    """A data source did not deliver; the model reads the message and may ask another source."""


class SourceNotFound(SourceError):
    """The source answered 404: the object does not exist, or the token may not see it."""


class SourceRefused(SourceError):
    """The source answered 400, 403, 422 or similar: the same request will fail again."""


class SourceUnavailable(SourceError):
    """The source timed out, broke the connection or answered 429 or 5xx, after all retries."""


class SourceResponseInvalid(SourceError):
    """The source's answer is too large, cut off, or not of the expected kind."""


class GitLabWriteError(HummingbirdError):
    """The write side of GitLab failed; the worker tries again later, or reports it in the thread."""


class GitLabNotFound(GitLabWriteError):
    """GitLab answered 404: the object does not exist, or the bot may not see it."""


class GitLabRequestRefused(GitLabWriteError):
    """GitLab answered 400, 403, 422 or similar: the same request will fail again."""


class GitLabUnavailable(GitLabWriteError):
    """GitLab timed out or answered 5xx, after all retries; nothing was written."""


class GitLabRateLimited(GitLabUnavailable):
    """GitLab answered 429: the caller must wait, which does not count as a failure."""


class GitLabWriteUncertain(GitLabWriteError):
    """Nobody knows whether a write took effect: look before writing again."""


class ProviderError(HummingbirdError):
    """The model provider failed; the recovery table decides what happens next."""


class ProviderUnavailable(ProviderError):
    """The provider is overloaded or answered 408, 409, 429 or 5xx: retry.

    `retry_after_s` is the provider's Retry-After, if it sent one.
    """

    def __init__(self, sentence: str, retry_after_s: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class ProviderTimeout(ProviderUnavailable):
    """The provider did not answer in time."""


class ProviderConnectionLost(ProviderUnavailable):
    """The connection to the provider broke."""


class ProviderUnreachable(ProviderUnavailable):
    """Nothing answers at the provider's address, so nothing was sent."""


class ProviderReplyUnreadable(ProviderUnavailable):
    """The provider's reply is not JSON, or is cut off in the middle."""


class ProviderRequestRefused(ProviderError):
    """The provider answered 400, 404 or similar: the same request will fail again."""


class ContextOverflow(ProviderError):
    """The request is longer than the model's window.

    `window` is its size in tokens, if the provider said so.
    """

    def __init__(self, sentence: str, window: int | None = None) -> None:
        super().__init__(sentence)
        self.window = window


class ThinkingRefused(ProviderError):
    """The provider says that signed thinking belongs to another conversation."""


class RunFailed(HummingbirdError):
    """A run of the library's `chat` ended without an answer.

    `reason` is the `EndReason` by name, `sentence` says what happened, `text` is what there was of an answer.
    """

    def __init__(self, sentence: str, reason: str = "", text: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.reason, self.text = sentence, str(reason), text


class PlatformError(HummingbirdError):
    """Our own machine or code failed."""


class InvalidRequest(PlatformError):
    """Hummingbird found its own request invalid and did not send it."""


class JournalDamaged(PlatformError):
    """A line in the middle of a journal cannot be read."""


class JournalUnwritable(PlatformError):
    """The journal cannot be written: the disk is full or read-only."""


class JournalWriteDelayed(JournalUnwritable):
    """A bucket does not take the journal now; the next commit writes the missing part too."""


class SessionTaken(JournalUnwritable):
    """Another process holds the session."""


class SandboxBroken(PlatformError):
    """The sandbox died or cannot be reached; never raised for a command's own failure."""


class ArchiveTooLarge(PlatformError):
    """The content of a sandbox is larger than a checkpoint may be."""


class ArchiveUnusable(PlatformError):
    """A checkpoint cannot be stored or read back: the disk is full, or permission is missing."""


class ObjectStoreUnusable(PlatformError):
    """The object store cannot be reached, or fails to store or return an object."""


class QueueUnusable(PlatformError):
    """A queue cannot be opened or reached, or is not set up as Hummingbird needs it."""


class CompactionFailed(PlatformError):
    """A compaction would save too little, or its summary failed."""


class CompactionUnaffordable(CompactionFailed):
    """The budget of the run or of the day is used up, so no summary was requested."""


class ReceiptExpired(PlatformError):
    """A queue message was held too long: another process may have it by now."""


class ReplayMismatch(PlatformError):
    """A replayed session and the conversation differ."""


def describe_error(error: BaseException) -> str:
    """Return the message of our own errors, and the name and message of others.

    Never raises, whatever an error's own `__str__` does.
    """
    try:
        words = replace_surrogates(str(error))
    except Exception:  # noqa: BLE001 - border: somebody's exception class; one that cannot be printed still has a name
        words = "it has no readable message"
    return words if isinstance(error, HummingbirdError) and words else f"{type(error).__name__}: {words}"


def require_extra(module: str, extra: str, feature: str) -> None:
    """Check, without importing it, that the module is installed. `feature` begins the sentence: "An SQS queue".

    Raises MissingSetting.
    """
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise MissingSetting(
            f"{feature} needs packages that a plain install leaves out: pip install 'hummingbird-agent[{extra}]'."
        )
