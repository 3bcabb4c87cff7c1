"""The one error tree, sorted by who must act. Every message is a sentence that says what to do.

HummingbirdError
├── OperatorError            whoever runs Hummingbird must change something
│   ├── UsageFault           an argument or option makes no sense
│   ├── UnknownModel         no such model, provider or mode
│   ├── MissingSetting       a key, region or project is not set
│   ├── ConfigurationBroken  the configuration file, all of its faults at once
│   ├── BrokenTool           a tool's schema, name or description is unusable
│   ├── SessionUnreadable    a journal of a newer format, or one that is not ours
│   ├── EventUnreadable      a webhook's body that is none of GitLab's
│   ├── InputUnreadable      a log, report or baseline that is not there, may not be read or is no text
│   ├── SandboxUnavailable   this machine cannot offer the sandbox that was asked for
│   ├── ClusterUnusable      a kubeconfig, its context or its credentials cannot be used
│   ├── CredentialRefused    401/403 from a provider, an expired or too narrow token of a data source
│   └── CreditExhausted      402, no quota, no prepaid credit
├── ModelMistake             the model must act: told to it as a tool result
│   ├── UnknownTool
│   ├── ArgumentsInvalid
│   ├── CommandFailed        a command or a file inside the sandbox: its own fault, not the sandbox's
│   ├── CallDenied           a hook, a rule or a person does not want this call
│   └── CallTimedOut         a tool that another one called took too long
├── SourceError              a data source did not give what was asked: told to the model, which may ask for others
│   ├── NothingThere         404: no such thing, or the token may not see it
│   ├── SourceRefused        400, 403, 422 and the like: the same request will fail again
│   ├── SourceDown           timeouts, broken connections, 429 and 5xx, after all retries
│   └── AnswerUnusable       too large, cut off, or not what was promised
├── ForgeError               the write side of GitLab: the worker tries again later, or says so in the thread
│   ├── ForgeMissing         404: no such thing, or the bot may not see it
│   ├── ForgeRefused         400, 403, 422 and the like: the same request will fail again
│   ├── ForgeDown            timeouts and 5xx, after all retries; nothing was written
│   │   └── ForgeBusy        429: it limits how often it may be asked, and to wait is no failure
│   └── WriteUncertain       a write whose end nobody saw: look before writing again
├── ProviderError            the provider failed; the recovery table decides
│   ├── Unavailable          retry: overload, 408/409/429/5xx; may carry Retry-After
│   │   ├── TimedOut
│   │   ├── ConnectionLost
│   │   └── ReplyUnreadable  not JSON, or cut off in the middle
│   ├── RequestRefused       400/404 and the like: the same request will fail again
│   ├── ContextOverflow      the request is longer than the model's window
│   └── ThinkingRefused      signed thinking that the provider says belongs elsewhere
└── PlatformError            our own machine or code
    ├── InvalidRequest       the builder found the request invalid and did not send it
    ├── JournalDamaged       a line in the middle of a journal cannot be read
    ├── JournalUnwritable    disk full, read-only
    │   ├── JournalBehind    a bucket does not take it now; what is missing goes along with the next commit
    │   └── JournalTaken     another process has the session
    ├── SandboxBroken        the sandbox died or cannot be reached; never the output of a command
    ├── ArchiveTooLarge      what a sandbox holds is more than a checkpoint may weigh
    ├── ArchiveUnusable      a checkpoint cannot be stored or read back: disk full, no permission
    ├── ObjectsUnusable      the store of large things cannot be reached, or does not take or give one
    ├── QueueUnusable        a queue cannot be opened or reached, or is not set up as we need it
    ├── NothingGained        a compaction that would save too little, or whose summary failed
    │   └── Unaffordable     nobody was asked for it: the money of the run or of the day is used up
    ├── ReceiptExpired       a message was held for too long: it may be with somebody else by now
    └── ScriptDeparted       a replayed session and the conversation are not the same
"""


class HummingbirdError(Exception):
    """Root of everything we raise on purpose."""


class OperatorError(HummingbirdError):
    pass


class UsageFault(OperatorError):
    pass


class UnknownModel(OperatorError):
    pass


class MissingSetting(OperatorError):
    pass


class ConfigurationBroken(OperatorError):
    """`faults`: each of them in a sentence of its own; the sentence of the error holds them all."""

    def __init__(self, sentence: str, faults: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.faults = faults


class BrokenTool(OperatorError):
    pass


class SessionUnreadable(OperatorError):
    pass


class EventUnreadable(OperatorError):
    pass


class InputUnreadable(OperatorError):
    pass


class SandboxUnavailable(OperatorError):
    pass


class ClusterUnusable(OperatorError):
    pass


class CredentialRefused(OperatorError):
    pass


class CreditExhausted(OperatorError):
    pass


class ModelMistake(HummingbirdError):
    pass


class UnknownTool(ModelMistake):
    pass


class ArgumentsInvalid(ModelMistake):
    pass


class CommandFailed(ModelMistake):
    def __init__(self, sentence: str, exit_code: int | None = None) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class CallDenied(ModelMistake):
    pass


class CallTimedOut(ModelMistake):
    pass


class SourceError(HummingbirdError):
    pass


class NothingThere(SourceError):
    pass


class SourceRefused(SourceError):
    pass


class SourceDown(SourceError):
    pass


class AnswerUnusable(SourceError):
    pass


class ForgeError(HummingbirdError):
    pass


class ForgeMissing(ForgeError):
    pass


class ForgeRefused(ForgeError):
    pass


class ForgeDown(ForgeError):
    pass


class ForgeBusy(ForgeDown):
    pass


class WriteUncertain(ForgeError):
    pass


class ProviderError(HummingbirdError):
    pass


class Unavailable(ProviderError):
    def __init__(self, sentence: str, retry_after_s: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class TimedOut(Unavailable):
    pass


class ConnectionLost(Unavailable):
    pass


class ReplyUnreadable(Unavailable):
    pass


class RequestRefused(ProviderError):
    pass


class ContextOverflow(ProviderError):
    pass


class ThinkingRefused(ProviderError):
    pass


class PlatformError(HummingbirdError):
    pass


class InvalidRequest(PlatformError):
    pass


class JournalDamaged(PlatformError):
    pass


class JournalUnwritable(PlatformError):
    pass


class JournalBehind(JournalUnwritable):
    pass


class JournalTaken(JournalUnwritable):
    pass


class SandboxBroken(PlatformError):
    pass


class ArchiveTooLarge(PlatformError):
    pass


class ArchiveUnusable(PlatformError):
    pass


class ObjectsUnusable(PlatformError):
    pass


class QueueUnusable(PlatformError):
    pass


class NothingGained(PlatformError):
    pass


class Unaffordable(NothingGained):
    pass


class ReceiptExpired(PlatformError):
    pass


class ScriptDeparted(PlatformError):
    pass
