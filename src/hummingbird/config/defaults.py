"""Every key of the configuration with its default and its meaning, in one table (G10).

Settings take their defaults from it, the JSON Schema its descriptions and the documentation its rows. Numbers that
bound something have their home in domain/limits and are only named here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field

from hummingbird.domain.limits import (
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

REQUIRED: Final = ...  # must be written
NOTHING: Mapping[str, Any] = MappingProxyType({})
INHERITED: Final = None  # as the settings say


@dataclass(frozen=True, slots=True)
class Row:
    """`key` has * where people choose a name. `default` None: as the settings say, or none at all."""

    key: str
    default: Any
    meaning: str


def _rows(prefix: str, *rows: tuple[str, Any, str]) -> Iterator[Row]:
    return (Row(f"{prefix}.{name}", default, meaning) for name, default, meaning in rows)


_SETTINGS = _rows(
    "settings",
    ("gitlab_url", "https://gitlab.com", "Address of the GitLab instance."),
    ("max_concurrent_agents", CONCURRENT_AGENTS, "Runs at the same time in one `serve`; others stay in the queue."),
    ("sqs_queue_url", "", "Address of the SQS queue that events come from, besides the webhook; empty: none."),
    (
        "sqs_fifo_queue_url",
        "",
        "Address of the SQS FIFO queue that work is handed out from; empty: the embedded queue.",
    ),
    ("s3_session_bucket", "", "Bucket that sessions are kept in, the same as `session_store: s3://BUCKET`."),
    ("session_store", "", "Where sessions are kept: a directory, s3://, gs:// or az://; empty: a local directory."),
    ("model", "", "Model as `provider:model` or by its name; empty: by the key that is set, else `digest`."),
    ("fallback_models", (), "Models that take over, in this order, when the one before fails."),
    ("models_allowed", (), "Models that people may choose in a command."),
    ("model_regions", NOTHING, "Beginning of a model's name → region of Vertex AI; the longest one holds."),
    ("max_iterations", WORKFLOW_ITERATIONS, "Answers of the model in one run."),
    ("context_limit", WORKFLOW_CONTEXT_TOKENS, "Input tokens of one call, from which a run must come to its end."),
    (
        "max_inline_size",
        MAX_INLINE_BYTES,
        "Bytes of a tool's result that stay in the conversation; more become a file.",
    ),
    ("max_runs_per_mr", RUNS_PER_MR, "Automatic runs of a workflow on one merge request."),
    ("internal_notes", True, "Whether notes are seen by members of the project only."),
    ("docs_url", "", "Link to the documentation, for the footer of notes."),
    ("source_url", "", "Link to the source code, for the footer of notes."),
    ("slack_url", "", "Link to the channel for questions, for the footer of notes."),
    ("slack_label", "Slack", "Words of that link."),
    ("trigger_prefix", "/hummingbird", "What a command in a note begins with."),
    ("session_marker_prefix", "hummingbird-session", "Name of the hidden comment that ties a note to its session."),
    ("auto_trigger", None, "If true, workflows without `trigger` run on failed pipelines; if false, none does."),
    ("former_bot_ids", (), "Users that the agent was before; their threads stay usable."),
    ("ca_bundle", "", "File with certificates that every connection trusts; empty: those of the system."),
    ("settle_seconds", SETTLE_S, "Seconds without a change before a failed pipeline is looked at."),
    ("settle_cap_seconds", SETTLE_CAP_S, "Seconds after which it is looked at in any case."),
    ("config_poll_seconds", CONFIG_POLL_S, "Seconds between two looks at this file in `serve`."),
)
_SANDBOX = _rows(
    "settings.sandbox",
    ("backend", "bubblewrap", "Kind of sandbox, unless --sandbox says otherwise."),
    ("image", "", "Container image; empty: the one that `hummingbird sandbox build` makes."),
    ("namespace", "", "Kubernetes namespace, where neither --namespace nor --context names one."),
    ("active_deadline_seconds", SANDBOX_DEADLINE_S, "Seconds after which a pod ends in any case."),
    ("linger_seconds", LINGER_S, "Seconds that a pod of a pool waits for a reply after a success; 0: not at all."),
    ("max_lingering_pods", LINGERING_PODS, "Pods that wait at the same time."),
    ("exec_timeout_seconds", EXEC_TIMEOUT_S, "Seconds that a command may take unless the model asks for more."),
    ("metadata.labels", NOTHING, "Labels of a pod."),
    ("metadata.annotations", NOTHING, "Annotations of a pod."),
    ("resources.requests.cpu", "100m", "Processor time that a pod asks for."),
    ("resources.requests.memory", "256Mi", "Memory that a pod asks for."),
    ("resources.requests.ephemeral-storage", "256Mi", "Space that a pod asks for."),
    ("resources.limits.cpu", "1", "Processor time that a pod may use."),
    ("resources.limits.memory", "1Gi", "Memory that a pod may use."),
    ("resources.limits.ephemeral-storage", "2Gi", "Space that a pod may use."),
)
_BUDGETS = _rows(
    "budgets",
    ("usd_per_run", None, "US dollars of one run."),
    ("seconds_per_run", None, "Seconds of one run."),
    ("usd_per_day", None, "US dollars of a project in a day."),
)
_PRICES = _rows(
    "settings.prices.*",
    ("input", REQUIRED, "US dollars for a million fresh input tokens."),
    ("output", REQUIRED, "US dollars for a million output tokens."),
    ("cache_read", None, "US dollars for a million tokens read from the cache; none: as fresh ones."),
    ("cache_write", None, "US dollars for a million tokens written to the cache; none: as fresh ones."),
)
_WORKFLOW = _rows(
    "workflows.*",
    ("trigger", None, "What starts it by itself; none: commands only, unless settings.auto_trigger is true."),
    ("description", "", "One line for the help text."),
    ("workflow_url", "", "Link to the prompt, for the footer of notes."),
    ("prompt", REQUIRED, "File with the prompt, relative to this file."),
    ("action", "post_gitlab_note", "What becomes of the result."),
    ("model", INHERITED, "Model of this workflow."),
    ("fallback_models", INHERITED, "Models that take over, in this order."),
    ("max_iterations", INHERITED, "Answers of the model in one run."),
    ("context_limit", INHERITED, "Input tokens of one call, from which a run must come to its end."),
    ("max_inline_size", INHERITED, "Bytes of a tool's result that stay in the conversation."),
    ("max_runs_per_mr", INHERITED, "Automatic runs on one merge request."),
    ("internal_notes", INHERITED, "Whether notes are seen by members of the project only."),
    (
        "context",
        "wrap_up",
        "What a full context leads to: a report (wrap_up), a summary of its middle (compact), or a plug-in's engine.",
    ),
    ("nothing_found", "line", "What is posted when there is nothing to say: one line, or nothing."),
    (
        "inline_findings",
        False,
        "Whether what it finds is posted on the lines of the diff; listed in the note where notes are internal.",
    ),
    ("ignore_users", (), "Authors whose merge requests are left alone: regular expressions for the whole name."),
    ("ignore_branches", (), "Source branches that are left alone: regular expressions for the whole name."),
    ("auto_resolve_on_push", False, "Whether a push resolves the threads about older commits."),
    ("auto_resolve_on_success", False, "Whether a successful pipeline resolves the threads."),
)
_SOURCES = _rows(
    "workflows.*.data_sources",
    ("gitlab.token_env", "", "Variable with a token that reads; empty: none."),
    ("gitlab.projects", (), "Other projects that the tools may look at."),
    ("konflux.cluster_url", REQUIRED, "API server and tenant: https://api.cluster.example:6443/ns/TENANT."),
    ("konflux.kubeconfig_env", "", "Variable with the path of a kubeconfig; empty: the usual one."),
    ("konflux.context", "", "Context of the kubeconfig; empty: the one of that server."),
    ("konflux.kubearchive_url", "", "Address of KubeArchive; empty: the cluster alone is asked."),
    ("konflux.ui_url", "", "Address of the web interface, where it cannot be derived from cluster_url."),
    ("testing_farm.token_env", "", "Variable with a token; empty: none, which is enough for public requests."),
    ("testing_farm.api_url", "", "Address of its API; empty: the public one."),
    ("testing_farm.artifacts", (), "Addresses below which artifacts are read; none: the two known ones."),
    ("testing_farm.private_addresses", False, "Whether artifacts may be in one's own network."),
)
_PROJECT = _rows(
    "workflows.*.projects.*",
    ("max_runs_per_mr", INHERITED, "Automatic runs on one merge request of this project."),
    ("internal_notes", INHERITED, "Whether notes are seen by members of this project only."),
    ("tokens.gitlab", "", "Variable with a token that reads, in place of the workflow's."),
    ("tokens.testing_farm", "", "Variable with a token, in place of the workflow's."),
)
_CHAT = _rows(
    "chat",
    ("model", "", "Model of conversations; empty: as settings.model says."),
    ("max_turns", CHAT_ITERATIONS, "Answers of the model to one message."),
    ("context", "compact", "What a full context leads to: a summary of its middle, or a plug-in's engine."),
    ("delegation.max_iterations", SUBAGENT_ITERATIONS, "Answers of the model in one sub-agent."),
    ("delegation.max_concurrent", SUBAGENTS, "Sub-agents at the same time."),
    ("compression.threshold", COMPRESSION_SHARE, "Share of the context from which the middle is summarised."),
    ("compression.protect_last_n", PROTECTED_MESSAGES, "Last messages that stay as they are."),
    ("fallback_providers", (), "Models that take over, in this order."),
    ("auxiliary.*.model", "", "Model of a side task; empty: the one of the conversation."),
    ("auxiliary.*.fallback_providers", (), "Models that take over in that side task."),
    ("memory.memory_char_limit", MEMORY_CHARS, "Characters of MEMORY.md."),
    ("memory.user_char_limit", USER_CHARS, "Characters of USER.md."),
    ("toolsets", None, "Toolsets that are offered; none: all."),
)
_PERMISSIONS = _rows(
    "chat.permissions[]",
    ("action", REQUIRED, "What happens to calls that the rule speaks of."),
    ("tool", "*", "Name of a tool; * stands for anything."),
    ("argument", "", "Argument that `pattern` is for; empty: all of them, written as JSON."),
    ("pattern", "", "What the argument is like; * stands for anything."),
    ("effects", (), "Effects of tools that the rule is for; none: any."),
    ("reason", "", "What the model is told; it should say what to do instead."),
    ("name", "", "Name of the rule, for messages."),
)
_MCP = _rows(
    "chat.mcp_servers.*",
    ("command", "", "Program that is the server."),
    ("args", (), "Its arguments."),
    ("env", (), "Variables that it is given."),
    ("url", "", "Address of a server that is reached over HTTP."),
    ("headers_env", NOTHING, "Header → variable with its value."),
    ("tools", (), "Tools that are offered; none: none; * means all."),
    ("read_tools", (), "Those of them that only read; every other one is asked about."),
)

TABLE: Mapping[str, Row] = MappingProxyType(
    {
        row.key: row
        for part in (
            *(_SETTINGS, _SANDBOX, _PRICES, _BUDGETS, _WORKFLOW, _SOURCES, _PROJECT),
            *(_CHAT, _PERMISSIONS, _MCP),
        )
        for row in part
    }
)


def reference() -> str:
    """The table in Markdown, for the documentation."""
    rows = (f"| `{row.key}` | {_shown(row.default)} | {row.meaning} |" for row in TABLE.values())
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows, ""])


def _shown(value: Any) -> str:
    if value is REQUIRED:
        return "required"
    if value is None or value in ("", (), NOTHING):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def default(key: str, **bounds: Any) -> Any:
    """A field of a settings model with the default and the meaning of that key."""
    row = TABLE[key]
    if row.default is NOTHING:  # pydantic copies a default that has no hash, and a frozen mapping cannot be copied
        return Field(default_factory=lambda: NOTHING, description=row.meaning, **bounds)
    return Field(default=row.default, description=row.meaning, **bounds)
