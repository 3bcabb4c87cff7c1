"""Chooses the models of a run when nobody names one, and says when rules stand in for a model."""

from collections.abc import Callable, Mapping, Sequence

from hummingbird.config.configuration import Configuration
from hummingbird.config.settings import ModelSettings, PriceSettings
from hummingbird.core.errors import MissingSetting, OperatorError
from hummingbird.models.model_names import CLAUDE_KEYS, DIGEST, GEMINI_KEYS, OPENAI_KEY, env_value, parse_model_name
from hummingbird.models.prices import PriceOverride, list_chat_models
from hummingbird.models.registry import ModelRegistry

# The model for the first API key that is set: mid-priced, because a run takes some twenty calls.
_DEFAULT_BY_KEY: tuple[tuple[tuple[str, ...], str], ...] = (
    (CLAUDE_KEYS, "anthropic:claude-sonnet-5-5"),
    (GEMINI_KEYS, "gemini:gemini-3.8-flash"),
    ((OPENAI_KEY,), "openai:gpt-6.1-terra"),
)


def default_model(environment: Mapping[str, str]) -> str:
    """Return the model of the API key that is set; `digest` without any key."""
    for keys, model in _DEFAULT_BY_KEY:
        if any(env_value(environment, key) for key in keys):
            return model
    return DIGEST


def model_chain(
    model: str, fallbacks: Sequence[str], environment: Mapping[str, str], *, explains_failures: bool = True
) -> tuple[str, ...]:
    """Return the models of a run in their order.

    Where failures are explained, `digest` comes last: it depends on no provider, so a report is written even when none
    answers. Nothing else can be done by rules: such a run fails instead, and can be tried again. Raises MissingSetting
    if it would have no model at all.
    """
    wanted = [model or default_model(environment), *fallbacks]
    until = next((at for at, name in enumerate(wanted) if parse_model_name(name)[0] == DIGEST), len(wanted))
    if explains_failures:
        return (*wanted[:until], DIGEST)
    if not until:
        keys = ", ".join((CLAUDE_KEYS[0], GEMINI_KEYS[0], OPENAI_KEY))
        raise MissingSetting(
            f"This workflow needs a language model: set one of {keys}, or name a model in the configuration."
        )
    return tuple(wanted[:until])


def chat_model_chain(model: str, fallbacks: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the models of a conversation in their order; `digest` only if it is named, because rules cannot converse.

    Raises MissingSetting if there is no model at all.
    """
    wanted = model or default_model(environment)
    if wanted == DIGEST and not model:
        keys = ", ".join((CLAUDE_KEYS[0], GEMINI_KEYS[0], OPENAI_KEY))
        raise MissingSetting(
            f"There is no model to talk to: set one of {keys}, or name one with --model or chat.model. A server of "
            "your own needs its address: OPENAI_BASE_URL=http://127.0.0.1:8080/v1 hummingbird chat "
            "--model openai-chat:NAME"
        )
    return (wanted, *fallbacks)


def selectable_models(configuration: Configuration, environment: Mapping[str, str]) -> list[str]:
    """Return the models that a person can switch to: those of the configuration, then those that a key is set for."""
    settings, chat = configuration.settings, configuration.chat
    named = [chat.model, settings.model, *chat.fallback_providers, *settings.fallback_models, *settings.models]
    families = {"claude-": "anthropic", "gemini-": "gemini", "gpt-": "openai"}
    keyed = {
        model.partition(":")[0]: model
        for keys, model in _DEFAULT_BY_KEY
        if any(env_value(environment, key) for key in keys)
    }
    listed = [
        f"{provider}:{model}"
        for model in reversed(list_chat_models())
        for beginning, provider in families.items()
        if model.startswith(beginning) and provider in keyed
    ]
    return list(dict.fromkeys(filter(None, [*named, *keyed.values(), *listed])))


def missing_model_credentials(configuration: Configuration, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each model that workflows use and whose credential is missing.

    A `digest` that somebody named needs none; if it is used only because no key is set, a sentence says so.
    """
    settings, found = configuration.settings, dict[str, list[str]]()
    models = ModelRegistry(environment, model_regions=settings.model_regions)
    for name, workflow in configuration.workflows.items():
        model = settings.model if workflow.model is None else workflow.model
        fallbacks = settings.fallback_models if workflow.fallback_models is None else workflow.fallback_models
        for wanted in model_chain(model, fallbacks, environment)[:-1]:
            try:
                models.check(wanted)
            except OperatorError as error:
                found.setdefault(str(error), []).append(name)
        if not model and default_model(environment) == DIGEST:
            found.setdefault(_NO_KEY, []).append(name)
    return tuple(f"No model can be asked in {', '.join(names)}: {why}" for why, names in found.items())


def model_check(current: Callable[[], Configuration], environment: Mapping[str, str]) -> Callable[[str], bool]:
    """Return a function that tells whether a model is of a provider that there are credentials for."""

    def can_ask(model: str) -> bool:
        try:
            return ModelRegistry(environment, model_regions=current().settings.model_regions).check(model)
        except OperatorError:
            return False

    return can_ask


_NO_KEY = (
    "set ANTHROPIC_API_KEY, GOOGLE_API_KEY or OPENAI_API_KEY, or GOOGLE_CLOUD_PROJECT and name a model. Until then "
    "failed pipelines are explained by rules alone, and nothing is reviewed."
)


def model_windows(models: Mapping[str, ModelSettings]) -> Mapping[str, int]:
    """Return the configured size of each model's window in tokens."""
    return {name: model.context_tokens for name, model in models.items()}


def price_overrides(prices: Mapping[str, PriceSettings]) -> Mapping[str, PriceOverride]:
    return {
        model: PriceOverride(price.input, price.output, price.cache_read, price.cache_write)
        for model, price in prices.items()
    }
