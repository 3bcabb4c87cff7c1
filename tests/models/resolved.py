"""Models as the registry makes them, for tests that look inside."""

from typing import Any

from hummingbird.models.http_model import HttpModel
from hummingbird.models.registry import ModelRegistry

KEYS = {"ANTHROPIC_API_KEY": "a-key", "GOOGLE_API_KEY": "g-key", "OPENAI_API_KEY": "o-key"}
VERTEX = {"GOOGLE_CLOUD_PROJECT": "acme", "GOOGLE_CLOUD_LOCATION": "europe-west1"}
EVERYTHING = {**KEYS, **VERTEX}


def made(name: str, environment: dict[str, str], **settings: Any) -> HttpModel:
    regions = settings.pop("model_regions", {})
    model = ModelRegistry(environment, model_regions=regions).resolve(name, **settings)
    assert isinstance(model, HttpModel)
    return model


def url(model: HttpModel) -> str:
    return model._endpoint.url(model._profile, stream=False)


def wire(model: HttpModel) -> str:
    return model._wire.name
