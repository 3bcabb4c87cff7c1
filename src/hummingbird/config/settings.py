"""The `settings` section: what holds for every workflow, and where things are.

Plain values; nobody reads a variable or a file here.
"""

from typing import Annotated, Literal

from pydantic import Field

from hummingbird.config.defaults import NOTHING, default
from hummingbird.config.kinds import (
    Address,
    Ids,
    Line,
    Marker,
    Money,
    Names,
    Part,
    Prefix,
    Price,
    Quantity,
    Server,
    Store,
    Texts,
)
from hummingbird.domain.limits import EXEC_TIMEOUT_CAP_S

Backend = Literal["bubblewrap", "podman", "k8s", "k8spool"]


class Requests(Part):
    cpu: Quantity = default("settings.sandbox.resources.requests.cpu")
    memory: Quantity = default("settings.sandbox.resources.requests.memory")
    ephemeral_storage: Quantity = default(
        "settings.sandbox.resources.requests.ephemeral-storage", alias="ephemeral-storage"
    )


class Ceilings(Part):
    cpu: Quantity = default("settings.sandbox.resources.limits.cpu")
    memory: Quantity = default("settings.sandbox.resources.limits.memory")
    ephemeral_storage: Quantity = default(
        "settings.sandbox.resources.limits.ephemeral-storage", alias="ephemeral-storage"
    )


class Resources(Part):
    requests: Requests = Field(default_factory=Requests)
    limits: Ceilings = Field(default_factory=Ceilings)


class PodMetadata(Part):
    labels: Names[Line, Line] = default("settings.sandbox.metadata.labels")
    annotations: Names[Line, str] = default("settings.sandbox.metadata.annotations")


class SandboxSettings(Part):
    backend: Backend = default("settings.sandbox.backend")
    image: Line = default("settings.sandbox.image")
    namespace: Line = default("settings.sandbox.namespace")
    active_deadline_seconds: int = default("settings.sandbox.active_deadline_seconds", ge=60)
    linger_seconds: int = default("settings.sandbox.linger_seconds", ge=0)
    max_lingering_pods: int = default("settings.sandbox.max_lingering_pods", ge=0)
    exec_timeout_seconds: float = default("settings.sandbox.exec_timeout_seconds", ge=1, le=EXEC_TIMEOUT_CAP_S)
    metadata: PodMetadata = Field(default_factory=PodMetadata)
    resources: Resources = Field(default_factory=Resources)


class Budgets(Part):
    """None: no ceiling of its own."""

    usd_per_run: Money | None = default("budgets.usd_per_run")
    seconds_per_run: Annotated[float, Field(gt=0)] | None = default("budgets.seconds_per_run")
    usd_per_day: Money | None = default("budgets.usd_per_day")


class Prices(Part):
    """US dollars for a million tokens."""

    input: Price = default("settings.prices.*.input")
    output: Price = default("settings.prices.*.output")
    cache_read: Price | None = default("settings.prices.*.cache_read")
    cache_write: Price | None = default("settings.prices.*.cache_write")


class Settings(Part):
    gitlab_url: Server = default("settings.gitlab_url", min_length=1)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    max_concurrent_agents: int = default("settings.max_concurrent_agents", ge=1, le=1000)
    sqs_queue_url: Address = default("settings.sqs_queue_url")
    sqs_fifo_queue_url: Address = default("settings.sqs_fifo_queue_url")
    s3_session_bucket: Line = default("settings.s3_session_bucket")
    session_store: Store = default("settings.session_store")
    model: Line = default("settings.model")
    fallback_models: Texts = default("settings.fallback_models")
    models_allowed: Texts = default("settings.models_allowed")
    model_regions: Names[Line, Line] = default("settings.model_regions")
    prices: Names[Line, Prices] = Field(
        default_factory=lambda: NOTHING, description="Model → prices that differ from the known ones."
    )
    max_iterations: int = default("settings.max_iterations", ge=1, le=10_000)
    context_limit: int = default("settings.context_limit", ge=1_000)
    max_inline_size: int = default("settings.max_inline_size", ge=256)
    max_runs_per_mr: int = default("settings.max_runs_per_mr", ge=0)
    internal_notes: bool = default("settings.internal_notes")
    budgets: Budgets = Field(default_factory=Budgets)
    docs_url: Address = default("settings.docs_url")
    source_url: Address = default("settings.source_url")
    slack_url: Address = default("settings.slack_url")
    slack_label: Line = default("settings.slack_label")
    trigger_prefix: Prefix = default("settings.trigger_prefix")
    session_marker_prefix: Marker = default("settings.session_marker_prefix")
    auto_trigger: bool | None = default("settings.auto_trigger")
    former_bot_ids: Ids = default("settings.former_bot_ids")
    ca_bundle: Line = default("settings.ca_bundle")
    settle_seconds: int = default("settings.settle_seconds", ge=0)
    settle_cap_seconds: int = default("settings.settle_cap_seconds", ge=0)
    config_poll_seconds: float = default("settings.config_poll_seconds", ge=1)

    @property
    def sessions(self) -> str:
        """The store's address, however it was written; empty means the local directory."""
        return self.session_store or (f"s3://{self.s3_session_bucket}" if self.s3_session_bucket else "")
