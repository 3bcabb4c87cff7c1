"""Define the settings models of the three sections of the file: `settings`, `workflows` and `chat`.

The models hold plain values. Secrets appear only as names of environment variables, which nothing here reads.
Defaults and descriptions come from `defaults.py`.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from hummingbird.config.defaults import EMPTY_MAPPING, config_field
from hummingbird.config.field_types import (
    CitationChoice,
    ClusterUrl,
    CommandPrefix,
    ConfigSection,
    ContextEngineName,
    EnvVariable,
    EnvVariables,
    FrozenMapping,
    MarkerWord,
    Money,
    Price,
    ProjectPath,
    ProjectPaths,
    Quantity,
    RegexTexts,
    ServerUrl,
    ServerUrls,
    SingleLine,
    SingleLines,
    StoreUrl,
    Url,
    UserIds,
    value_error,
)
from hummingbird.core.errors import UsageError
from hummingbird.core.limits import EXEC_TIMEOUT_CAP_S
from hummingbird.core.permissions import PermissionAction, PermissionRule
from hummingbird.core.tool_spec import ToolEffect

BackendName = Literal["auto", "bubblewrap", "podman", "k8s", "k8spool"]


class ResourceRequests(ConfigSection):
    """Resources that a sandbox pod requests."""

    cpu: Quantity = config_field("settings.sandbox.resources.requests.cpu")
    memory: Quantity = config_field("settings.sandbox.resources.requests.memory")
    ephemeral_storage: Quantity = config_field(
        "settings.sandbox.resources.requests.ephemeral-storage", alias="ephemeral-storage"
    )


class ResourceLimits(ConfigSection):
    """Resources that a sandbox pod may use at most."""

    cpu: Quantity = config_field("settings.sandbox.resources.limits.cpu")
    memory: Quantity = config_field("settings.sandbox.resources.limits.memory")
    ephemeral_storage: Quantity = config_field(
        "settings.sandbox.resources.limits.ephemeral-storage", alias="ephemeral-storage"
    )


class PodResources(ConfigSection):
    """A sandbox pod's resource requests and limits."""

    requests: ResourceRequests = Field(default_factory=ResourceRequests)
    limits: ResourceLimits = Field(default_factory=ResourceLimits)


class PodMetadataSettings(ConfigSection):
    """Labels and annotations of a sandbox pod."""

    labels: FrozenMapping[SingleLine, SingleLine] = config_field("settings.sandbox.metadata.labels")
    annotations: FrozenMapping[SingleLine, str] = config_field("settings.sandbox.metadata.annotations")


class SandboxSettings(ConfigSection):
    """Where and how sandboxes run."""

    backend: BackendName = config_field("settings.sandbox.backend")
    image: SingleLine = config_field("settings.sandbox.image")
    namespace: SingleLine = config_field("settings.sandbox.namespace")
    context: SingleLine = config_field("settings.sandbox.context")
    active_deadline_seconds: int = config_field("settings.sandbox.active_deadline_seconds", ge=60)
    linger_seconds: int = config_field("settings.sandbox.linger_seconds", ge=0)
    max_lingering_pods: int = config_field("settings.sandbox.max_lingering_pods", ge=0)
    exec_timeout_seconds: float = config_field("settings.sandbox.exec_timeout_seconds", ge=1, le=EXEC_TIMEOUT_CAP_S)
    metadata: PodMetadataSettings = Field(default_factory=PodMetadataSettings)
    resources: PodResources = Field(default_factory=PodResources)


class BudgetSettings(ConfigSection):
    """Upper limits for cost and time. None means: no limit at this level."""

    usd_per_run: Money | None = config_field("budgets.usd_per_run")
    seconds_per_run: Annotated[float, Field(gt=0)] | None = config_field("budgets.seconds_per_run")
    usd_per_day: Money | None = config_field("budgets.usd_per_day")


class ModelSettings(ConfigSection):
    """Facts about a model that the built-in table lacks or gets wrong."""

    context_tokens: int = config_field("settings.models.*.context_tokens", ge=1_000)


class PriceSettings(ConfigSection):
    """Prices of a model in US dollars per million tokens."""

    input: Price = config_field("settings.prices.*.input")
    output: Price = config_field("settings.prices.*.output")
    cache_read: Price | None = config_field("settings.prices.*.cache_read")
    cache_write: Price | None = config_field("settings.prices.*.cache_write")


class Settings(ConfigSection):
    """The `settings` section: values for all workflows."""

    gitlab_url: ServerUrl = config_field("settings.gitlab_url", min_length=1)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    max_concurrent_agents: int = config_field("settings.max_concurrent_agents", ge=1, le=1000)
    sqs_queue_url: Url = config_field("settings.sqs_queue_url")
    sqs_fifo_queue_url: Url = config_field("settings.sqs_fifo_queue_url")
    s3_session_bucket: SingleLine = config_field("settings.s3_session_bucket")
    session_store: StoreUrl = config_field("settings.session_store")
    model: SingleLine = config_field("settings.model")
    fallback_models: SingleLines = config_field("settings.fallback_models")
    models_allowed: SingleLines = config_field("settings.models_allowed")
    model_regions: FrozenMapping[SingleLine, SingleLine] = config_field("settings.model_regions")
    models: FrozenMapping[SingleLine, ModelSettings] = Field(
        default_factory=lambda: EMPTY_MAPPING, description="Model → what is not known of it, or differs."
    )
    prices: FrozenMapping[SingleLine, PriceSettings] = Field(
        default_factory=lambda: EMPTY_MAPPING, description="Model → prices that differ from the known ones."
    )
    max_iterations: int = config_field("settings.max_iterations", ge=1, le=10_000)
    context_limit: int = config_field("settings.context_limit", ge=1_000)
    max_inline_size: int = config_field("settings.max_inline_size", ge=256)
    max_runs_per_mr: int = config_field("settings.max_runs_per_mr", ge=0)
    internal_notes: bool = config_field("settings.internal_notes")
    budgets: BudgetSettings = Field(default_factory=BudgetSettings)
    docs_url: Url = config_field("settings.docs_url")
    dashboard_url: Url = config_field("settings.dashboard_url")
    source_url: Url = config_field("settings.source_url")
    slack_url: Url = config_field("settings.slack_url")
    slack_label: SingleLine = config_field("settings.slack_label")
    trigger_prefix: CommandPrefix = config_field("settings.trigger_prefix")
    session_marker_prefix: MarkerWord = config_field("settings.session_marker_prefix")
    auto_trigger: bool | None = config_field("settings.auto_trigger")
    former_bot_ids: UserIds = config_field("settings.former_bot_ids")
    ca_bundle: SingleLine = config_field("settings.ca_bundle")
    settle_seconds: int = config_field("settings.settle_seconds", ge=0)
    settle_cap_seconds: int = config_field("settings.settle_cap_seconds", ge=0)
    config_poll_seconds: float = config_field("settings.config_poll_seconds", ge=1)

    @property
    def session_store_url(self) -> str:
        """The session store's address from `session_store` or `s3_session_bucket`; empty means a local directory."""
        return self.session_store or (f"s3://{self.s3_session_bucket}" if self.s3_session_bucket else "")


# The `workflows` section.

EMPTY_WHEN_NONE = BeforeValidator(lambda value: {} if value is None else value)  # `testing_farm:` alone declares it
TriggerName = Literal["pipeline", "merge_request"]


class GitLabSourceSettings(ConfigSection):
    """GitLab as a data source of a workflow."""

    token_env: EnvVariable = config_field("workflows.*.data_sources.gitlab.token_env")
    projects: ProjectPaths = config_field("workflows.*.data_sources.gitlab.projects")
    storage: ServerUrls = config_field("workflows.*.data_sources.gitlab.storage")


class KonfluxSourceSettings(ConfigSection):
    """Konflux as a data source of a workflow."""

    cluster_url: ClusterUrl = config_field("workflows.*.data_sources.konflux.cluster_url")
    kubeconfig_env: EnvVariable = config_field("workflows.*.data_sources.konflux.kubeconfig_env")
    context: SingleLine = config_field("workflows.*.data_sources.konflux.context")
    kubearchive_url: ServerUrl = config_field("workflows.*.data_sources.konflux.kubearchive_url")
    ui_url: ServerUrl = config_field("workflows.*.data_sources.konflux.ui_url")


class TestingFarmSourceSettings(ConfigSection):
    """Testing Farm as a data source of a workflow."""

    __test__ = False  # pytest would take it for a test

    token_env: EnvVariable = config_field("workflows.*.data_sources.testing_farm.token_env")
    api_url: ServerUrl = config_field("workflows.*.data_sources.testing_farm.api_url")
    artifacts: ServerUrls = config_field("workflows.*.data_sources.testing_farm.artifacts")
    private_addresses: bool = config_field("workflows.*.data_sources.testing_farm.private_addresses")


class DataSourceSettings(ConfigSection):
    """The data sources of a workflow. None means: not declared, so the workflow has no tools for it."""

    gitlab: Annotated[GitLabSourceSettings | None, EMPTY_WHEN_NONE] = None
    konflux: Annotated[KonfluxSourceSettings | None, EMPTY_WHEN_NONE] = None
    testing_farm: Annotated[TestingFarmSourceSettings | None, EMPTY_WHEN_NONE] = None

    @property
    def declared_names(self) -> tuple[str, ...]:
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)


class TokenVariables(ConfigSection):
    """Names of variables with a project's own tokens. Konflux takes its credentials from the kubeconfig instead."""

    gitlab: EnvVariable = config_field("workflows.*.projects.*.tokens.gitlab")
    testing_farm: EnvVariable = config_field("workflows.*.projects.*.tokens.testing_farm")


class ProjectSettings(ConfigSection):
    """A project's own values. None means: the workflow decides."""

    max_runs_per_mr: Annotated[int, Field(ge=0)] | None = config_field("workflows.*.projects.*.max_runs_per_mr")
    internal_notes: bool | None = config_field("workflows.*.projects.*.internal_notes")
    tokens: TokenVariables = Field(default_factory=TokenVariables)


class WorkflowSettings(ConfigSection):
    """One workflow. None means: the value of the `settings` section applies."""

    trigger: TriggerName | None = config_field("workflows.*.trigger")
    description: SingleLine = config_field("workflows.*.description")
    workflow_url: Url = config_field("workflows.*.workflow_url")
    prompt: SingleLine = config_field("workflows.*.prompt", min_length=1)
    action: Literal["post_gitlab_note"] = config_field("workflows.*.action")
    model: SingleLine | None = config_field("workflows.*.model")
    fallback_models: SingleLines | None = config_field("workflows.*.fallback_models")
    max_iterations: Annotated[int, Field(ge=1, le=10_000)] | None = config_field("workflows.*.max_iterations")
    context_limit: Annotated[int, Field(ge=1_000)] | None = config_field("workflows.*.context_limit")
    max_inline_size: Annotated[int, Field(ge=256)] | None = config_field("workflows.*.max_inline_size")
    max_runs_per_mr: Annotated[int, Field(ge=0)] | None = config_field("workflows.*.max_runs_per_mr")
    internal_notes: bool | None = config_field("workflows.*.internal_notes")
    context: ContextEngineName = config_field("workflows.*.context")
    nothing_found: Literal["line", "silence"] = config_field("workflows.*.nothing_found")
    inline_findings: bool = config_field("workflows.*.inline_findings")
    citations: CitationChoice = config_field("workflows.*.citations")
    budgets: BudgetSettings = Field(default_factory=BudgetSettings)
    ignore_users: RegexTexts = config_field("workflows.*.ignore_users")
    ignore_branches: RegexTexts = config_field("workflows.*.ignore_branches")
    auto_resolve_on_push: bool = config_field("workflows.*.auto_resolve_on_push")
    auto_resolve_on_success: bool = config_field("workflows.*.auto_resolve_on_success")
    data_sources: DataSourceSettings = Field(default_factory=DataSourceSettings)
    projects: FrozenMapping[ProjectPath, ProjectSettings] = Field(
        default_factory=lambda: EMPTY_MAPPING,
        description="Path of a project → what it has of its own; * is every project that is not named.",
    )

    def find_project(self, project: str) -> ProjectSettings | None:
        """Return the workflow's entry for a project; None if the workflow does not apply to it.

        GitLab's paths ignore case.
        """
        wanted = project.casefold()
        named = (entry for path, entry in self.projects.items() if path.casefold() == wanted)
        return next(named, self.projects.get("*"))


# The `chat` section: conversations in a terminal, an editor or a browser.

TASKS = ("summary",)  # side tasks that can have their own model
EffectName = Literal["read", "write", "exec", "send"]


def _check_task(name: str) -> str:
    if name not in TASKS:
        raise value_error(f"expected a side task that there is: {', '.join(TASKS)}")
    return name


SideTaskName = Annotated[str, AfterValidator(_check_task)]


class DelegationSettings(ConfigSection):
    """Limits for sub-agents."""

    max_iterations: int = config_field("chat.delegation.max_iterations", ge=1, le=10_000)
    max_concurrent: int = config_field("chat.delegation.max_concurrent", ge=1, le=16)


class CompressionSettings(ConfigSection):
    """When and how a long conversation is summarised."""

    threshold: float = config_field("chat.compression.threshold", gt=0, lt=1)
    protect_last_n: int = config_field("chat.compression.protect_last_n", ge=0)


class SideTaskSettings(ConfigSection):
    """The models of a side task, such as summaries."""

    model: SingleLine = config_field("chat.auxiliary.*.model")
    fallback_providers: SingleLines = config_field("chat.auxiliary.*.fallback_providers")


class MemorySettings(ConfigSection):
    """Size limits of the memory files."""

    memory_char_limit: int = config_field("chat.memory.memory_char_limit", ge=0)
    user_char_limit: int = config_field("chat.memory.user_char_limit", ge=0)


class PermissionSettings(ConfigSection):
    """One permission rule as written in the file."""

    action: Literal["allow", "ask", "deny"] = config_field("chat.permissions[].action")
    tool: SingleLine = config_field("chat.permissions[].tool")
    argument: SingleLine = config_field("chat.permissions[].argument")
    pattern: str = config_field("chat.permissions[].pattern")
    effects: Annotated[tuple[EffectName, ...], Field(strict=False)] = config_field("chat.permissions[].effects")
    reason: SingleLine = config_field("chat.permissions[].reason")
    name: SingleLine = config_field("chat.permissions[].name")

    @model_validator(mode="after")
    def _check_rule(self) -> "PermissionSettings":
        try:
            self.to_rule()
        except UsageError as error:
            raise value_error("expected a rule that means something: check `tool`, `argument` and `pattern`") from error
        return self

    def to_rule(self) -> PermissionRule:
        effects = frozenset(map(ToolEffect, self.effects))
        action = PermissionAction(self.action)
        return PermissionRule(action, self.tool, self.argument, self.pattern, effects, self.reason, self.name)


class McpServerEntry(ConfigSection):
    """An MCP server: a program (`command`) or an address (`url`).

    `env` and `headers_env` name the variables with its secrets. Only the tools in `tools` are offered to the model.
    """

    command: SingleLine = config_field("chat.mcp_servers.*.command")
    args: SingleLines = config_field("chat.mcp_servers.*.args")
    env: EnvVariables = config_field("chat.mcp_servers.*.env")
    url: Url = config_field("chat.mcp_servers.*.url")
    headers_env: FrozenMapping[SingleLine, EnvVariable] = config_field("chat.mcp_servers.*.headers_env")
    tools: SingleLines = config_field("chat.mcp_servers.*.tools")
    read_tools: SingleLines = config_field("chat.mcp_servers.*.read_tools")

    @model_validator(mode="after")
    def _check_transport(self) -> "McpServerEntry":
        if bool(self.command) == bool(self.url):
            raise value_error("expected either `command` or `url`")
        return self


class ChatSettings(ConfigSection):
    """The `chat` section: conversations with people."""

    model: SingleLine = config_field("chat.model")
    max_turns: int = config_field("chat.max_turns", ge=1, le=10_000)
    context_limit: Annotated[int, Field(ge=1_000)] | None = config_field("chat.context_limit")
    context: ContextEngineName = config_field("chat.context")
    delegation: DelegationSettings = Field(default_factory=DelegationSettings)
    compression: CompressionSettings = Field(default_factory=CompressionSettings)
    fallback_providers: SingleLines = config_field("chat.fallback_providers")
    titles: bool = config_field("chat.titles")
    bell: bool = config_field("chat.bell")
    auxiliary: FrozenMapping[SideTaskName, SideTaskSettings] = Field(
        default_factory=lambda: EMPTY_MAPPING, description="Name of a side task (summary, also of titles) → its model."
    )
    memory: MemorySettings = Field(default_factory=MemorySettings)
    toolsets: SingleLines | None = config_field("chat.toolsets")
    permissions: Annotated[tuple[PermissionSettings, ...], Field(strict=False)] = Field(
        default=(), description="Rules for calls of tools."
    )
    mcp_servers: FrozenMapping[SingleLine, McpServerEntry] = Field(
        default_factory=lambda: EMPTY_MAPPING, description="Name → a server of tools."
    )
