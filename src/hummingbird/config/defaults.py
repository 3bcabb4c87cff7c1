"""List every configuration key with its default and its meaning, in one table.

The settings models take their defaults from this table, the JSON Schema its descriptions, and the documentation its
rows. Numeric limits are defined in `core/limits.py` and only referenced here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field

from hummingbird.core.limits import (
    CHAT_ITERATIONS,
    COMPRESSION_SHARE,
    CONCURRENT_AGENTS,
    CONFIG_POLL_S,
    EXEC_TIMEOUT_S,
    LINGER_S,
    LINGERING_PODS,
    MAX_INLINE_BYTES,
    MEMORY_CHARS,
    PROTECTED_MESSAGES,
    RUNS_PER_MR,
    SANDBOX_DEADLINE_S,
    SETTLE_CAP_S,
    SETTLE_S,
    SUBAGENT_ITERATIONS,
    SUBAGENTS,
    USER_CHARS,
    WORKFLOW_CONTEXT_TOKENS,
    WORKFLOW_ITERATIONS,
)

REQUIRED: Final = ...  # the file must contain the key
EMPTY_MAPPING: Mapping[str, Any] = MappingProxyType({})
INHERITED: Final = None  # the value of the `settings` section applies


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key of the configuration, as CONFIG_KEYS lists it.

    `key` contains * where people choose a name. A `default` of None means: inherited from `settings`, or no value.
    """

    key: str
    default: Any
    meaning: str


def _key_rows(prefix: str, *rows: tuple[str, Any, str]) -> Iterator[ConfigKey]:
    return (ConfigKey(f"{prefix}.{name}", default, meaning) for name, default, meaning in rows)


_SETTINGS = _key_rows(
    "settings",
    ("gitlab_url", "https://gitlab.com", "Address of the GitLab instance."),
    (
        "max_concurrent_agents",
        CONCURRENT_AGENTS,
        "Runs at the same time in one `serve`; further ones wait in the queue.",
    ),
    ("sqs_queue_url", "", "Address of an SQS queue with events, in addition to the webhook; empty: none."),
    (
        "sqs_fifo_queue_url",
        "",
        "Address of the SQS FIFO queue for work orders; empty: the embedded queue.",
    ),
    ("s3_session_bucket", "", "Bucket for sessions; short for `session_store: s3://BUCKET`."),
    ("session_store", "", "Where sessions are stored: a directory, s3://, gs:// or az://; empty: a local directory."),
    ("model", "", "Model as `provider:model` or by its name; empty: chosen by the API key that is set, else `digest`."),
    ("fallback_models", (), "Models to try, in this order, when the previous one fails."),
    ("models_allowed", (), "Models that users may choose in a command; empty: any of a provider with credentials."),
    ("model_regions", EMPTY_MAPPING, "Beginning of a model's name → region of Vertex AI; the longest match counts."),
    ("max_iterations", WORKFLOW_ITERATIONS, "Maximum number of model answers in one run."),
    ("context_limit", WORKFLOW_CONTEXT_TOKENS, "Input tokens of one call above which the run must finish."),
    (
        "max_inline_size",
        MAX_INLINE_BYTES,
        "Bytes of an output that stay in the conversation, at most 80 % of context_limit; a larger one becomes a file.",
    ),
    ("max_runs_per_mr", RUNS_PER_MR, "Maximum number of automatic runs of a workflow on one merge request."),
    ("internal_notes", True, "Whether only project members can see the notes."),
    ("docs_url", "", "Link to the documentation, for the footer of notes."),
    ("dashboard_url", "", "Address of the dashboard; notes link the transcript there and do not hold it themselves."),
    ("source_url", "", "Link to the source code, for the footer of notes."),
    ("slack_url", "", "Link to the channel for questions, for the footer of notes."),
    ("slack_label", "Slack", "Text of that link."),
    ("trigger_prefix", "/hummingbird", "First word of a command in a note."),
    ("session_marker_prefix", "hummingbird-session", "Name of the hidden comment that ties a note to its session."),
    ("auto_trigger", None, "If true, workflows without `trigger` run on failed pipelines; if false, no workflow does."),
    ("former_bot_ids", (), "User ids of earlier bot accounts; their threads stay usable."),
    (
        "ca_bundle",
        "",
        "File with CA certificates for all connections; empty: $REQUESTS_CA_BUNDLE, $SSL_CERT_FILE, else the system's.",
    ),
    ("settle_seconds", SETTLE_S, "Seconds without a change before a failed pipeline is analysed."),
    ("settle_cap_seconds", SETTLE_CAP_S, "Seconds after which it is analysed in any case."),
    ("config_poll_seconds", CONFIG_POLL_S, "Seconds between two looks at this file in `serve`."),
)
_SANDBOX = _key_rows(
    "settings.sandbox",
    (
        "backend",
        "auto",
        "Kind of sandbox, unless --sandbox says otherwise; auto: for `serve` k8spool where it runs in a cluster or "
        "`namespace` is set, else bubblewrap.",
    ),
    ("image", "", "Container image; empty: the one that `hummingbird sandbox build` makes."),
    ("namespace", "", "Kubernetes namespace, where neither --namespace nor --context names one."),
    (
        "context",
        "",
        "Context of the kubeconfig for pods; empty: in a pod its own service account, elsewhere the current one.",
    ),
    ("active_deadline_seconds", SANDBOX_DEADLINE_S, "Seconds after which a pod ends in any case."),
    (
        "linger_seconds",
        LINGER_S,
        "Seconds that a pod of a pool waits for a reply after a successful run; 0: not at all.",
    ),
    ("max_lingering_pods", LINGERING_PODS, "Maximum number of pods that wait at the same time."),
    ("exec_timeout_seconds", EXEC_TIMEOUT_S, "Seconds that a command may take unless the model asks for more."),
    ("metadata.labels", EMPTY_MAPPING, "Labels of a pod."),
    ("metadata.annotations", EMPTY_MAPPING, "Annotations of a pod."),
    ("resources.requests.cpu", "100m", "CPU that a pod requests."),
    ("resources.requests.memory", "256Mi", "Memory that a pod requests."),
    ("resources.requests.ephemeral-storage", "256Mi", "Disk space that a pod requests."),
    ("resources.limits.cpu", "1", "CPU limit of a pod."),
    ("resources.limits.memory", "1Gi", "Memory limit of a pod."),
    ("resources.limits.ephemeral-storage", "2Gi", "Disk space limit of a pod."),
)
_BUDGETS = _key_rows(
    "budgets",
    ("usd_per_run", None, "Maximum cost of one run in US dollars."),
    ("seconds_per_run", None, "Maximum duration of one run in seconds."),
    ("usd_per_day", None, "Maximum cost of a project per day in US dollars."),
)
_PRICES = _key_rows(
    "settings.prices.*",
    ("input", REQUIRED, "US dollars per million input tokens that are not cached."),
    ("output", REQUIRED, "US dollars per million output tokens."),
    ("cache_read", None, "US dollars per million tokens read from the cache; none: the `input` price."),
    ("cache_write", None, "US dollars per million tokens written to the cache; none: the `input` price."),
)
_MODELS = _key_rows(
    "settings.models.*",
    (
        "context_tokens",
        REQUIRED,
        "Tokens that the model's window has, where they are not known or the server allows fewer.",
    ),
)
_WORKFLOW = _key_rows(
    "workflows.*",
    ("trigger", None, "What starts it automatically; none: commands only, unless settings.auto_trigger is true."),
    ("description", "", "One line for the help text."),
    ("workflow_url", "", "Link to the prompt, for the footer of notes."),
    ("prompt", REQUIRED, "File with the prompt, relative to this file."),
    ("action", "post_gitlab_note", "What happens with the result."),
    ("model", INHERITED, "Model of this workflow."),
    ("fallback_models", INHERITED, "Models to try, in this order, when the previous one fails."),
    ("max_iterations", INHERITED, "Maximum number of model answers in one run."),
    ("context_limit", INHERITED, "Input tokens of one call above which the run must finish."),
    ("max_inline_size", INHERITED, "Bytes of an output that stay in the conversation, at most 80 % of context_limit."),
    ("max_runs_per_mr", INHERITED, "Maximum number of automatic runs on one merge request."),
    ("internal_notes", INHERITED, "Whether only project members can see the notes."),
    (
        "context",
        "wrap_up",
        "What happens when the context is full: finish with a report (wrap_up), summarise the middle (compact), or a "
        "plug-in's engine.",
    ),
    ("nothing_found", "line", "What is posted when nothing was found: one line, or nothing (silence)."),
    (
        "inline_findings",
        False,
        "Whether findings are posted on the lines of the diff; internal notes list them instead.",
    ),
    (
        "citations",
        "mark",
        "What becomes of a quoted line that was not fetched: removed (strict), marked (mark), or not checked (off).",
    ),
    ("ignore_users", (), "Authors whose merge requests are ignored: regular expressions that match the whole name."),
    ("ignore_branches", (), "Source branches that are ignored: regular expressions that match the whole name."),
    ("auto_resolve_on_push", False, "Whether a push resolves the threads about older commits."),
    ("auto_resolve_on_success", False, "Whether a successful pipeline resolves the threads."),
)
_SOURCES = _key_rows(
    "workflows.*.data_sources",
    ("gitlab.token_env", "", "Variable with a read-only token; empty: none."),
    ("gitlab.projects", (), "Other projects that the tools may read."),
    (
        "gitlab.storage",
        (),
        "Addresses of object stores in your own network that GitLab leads to for artifacts; they get no token.",
    ),
    ("konflux.cluster_url", REQUIRED, "API server and tenant: https://api.cluster.example:6443/ns/TENANT."),
    ("konflux.kubeconfig_env", "", "Variable with the path of a kubeconfig; empty: the default one."),
    ("konflux.context", "", "Context of the kubeconfig; empty: the one for that server."),
    ("konflux.kubearchive_url", "", "Address of KubeArchive; empty: only the cluster is asked."),
    ("konflux.ui_url", "", "Address of the web interface, where it cannot be derived from cluster_url."),
    ("testing_farm.token_env", "", "Variable with a token; empty: none, which is enough for public requests."),
    ("testing_farm.api_url", "", "Address of its API; empty: the public one."),
    (
        "testing_farm.artifacts",
        (),
        "Addresses below which artifacts are read, links from the first; none: the two known ones.",
    ),
    (
        "testing_farm.private_addresses",
        False,
        "Whether artifacts of other hosts than the two known ones may be at private network addresses.",
    ),
)
_PROJECT = _key_rows(
    "workflows.*.projects.*",
    ("max_runs_per_mr", INHERITED, "Maximum number of automatic runs on one merge request of this project."),
    ("internal_notes", INHERITED, "Whether only members of this project can see the notes."),
    ("tokens.gitlab", "", "Variable with a read-only token, instead of the workflow's."),
    ("tokens.testing_farm", "", "Variable with a token, instead of the workflow's."),
)
_CHAT = _key_rows(
    "chat",
    ("model", "", "Model of conversations; empty: the value of settings.model."),
    ("max_turns", CHAT_ITERATIONS, "Maximum number of model answers to one message."),
    ("context_limit", None, "Maximum number of tokens of context; none: the model's window."),
    (
        "context",
        "compact",
        "What happens when the context is full: summarise the middle (compact), or a plug-in's engine.",
    ),
    ("delegation.max_iterations", SUBAGENT_ITERATIONS, "Maximum number of model answers in one sub-agent."),
    ("delegation.max_concurrent", SUBAGENTS, "Maximum number of sub-agents at the same time."),
    ("compression.threshold", COMPRESSION_SHARE, "Share of the context above which the middle is summarised."),
    ("compression.protect_last_n", PROTECTED_MESSAGES, "Number of last messages that are not summarised."),
    ("fallback_providers", (), "Models to try, in this order, when the previous one fails."),
    ("titles", True, "Whether a model names the sessions of a terminal, after the first answer."),
    ("bell", True, "Whether the terminal rings when you are needed and have not typed for a while."),
    ("auxiliary.*.model", "", "Model of a side task; empty: the one of the conversation."),
    ("auxiliary.*.fallback_providers", (), "Models to try in that side task when the previous one fails."),
    ("memory.memory_char_limit", MEMORY_CHARS, "Maximum number of characters in MEMORY.md."),
    ("memory.user_char_limit", USER_CHARS, "Maximum number of characters in USER.md."),
    ("toolsets", None, "Toolsets that are offered; none: all."),
)
_PERMISSIONS = _key_rows(
    "chat.permissions[]",
    ("action", REQUIRED, "What happens to calls that the rule matches."),
    ("tool", "*", "Name of a tool; * stands for anything."),
    ("argument", "", "Argument that `pattern` is matched against; empty: all of them, as JSON."),
    ("pattern", "", "Text that the argument must match; * stands for anything."),
    ("effects", (), "Effects of tools that the rule applies to; none: any."),
    ("reason", "", "Message to the model; it should say what to do instead."),
    ("name", "", "Name of the rule, for messages."),
)
_MCP = _key_rows(
    "chat.mcp_servers.*",
    ("command", "", "Program to start as the server."),
    ("args", (), "Its arguments."),
    ("env", (), "Variables that are passed to it."),
    ("url", "", "Address of an HTTP server."),
    ("headers_env", EMPTY_MAPPING, "Header → variable with its value."),
    ("tools", (), "Tools that are offered; empty: none; * means all."),
    ("read_tools", (), "Tools among them that only read; the user is asked about every other one."),
)

CONFIG_KEYS: Mapping[str, ConfigKey] = MappingProxyType(
    {
        row.key: row
        for part in (
            *(_SETTINGS, _SANDBOX, _PRICES, _MODELS, _BUDGETS, _WORKFLOW, _SOURCES, _PROJECT),
            *(_CHAT, _PERMISSIONS, _MCP),
        )
        for row in part
    }
)


def reference_markdown() -> str:
    """Return the table as Markdown, for the documentation."""
    rows = (f"| `{row.key}` | {_format_default(row.default)} | {row.meaning} |" for row in CONFIG_KEYS.values())
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows, ""])


def _format_default(value: Any) -> str:
    if value is REQUIRED:
        return "required"
    if value is None or value in ("", (), EMPTY_MAPPING):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def config_field(key: str, **bounds: Any) -> Any:
    """Create a pydantic field with the default and the description of that key."""
    row = CONFIG_KEYS[key]
    # pydantic copies a default that is not hashable, and a frozen mapping cannot be copied
    if row.default is EMPTY_MAPPING:
        return Field(default_factory=lambda: EMPTY_MAPPING, description=row.meaning, **bounds)
    return Field(default=row.default, description=row.meaning, **bounds)
