"""The models that runs would have: whether everything they need is set, and with leave whether they answer."""

from collections.abc import Iterator
from functools import partial
from uuid import uuid4

from hummingbird.adapters.models.registry import Models
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.doctor.finding import Check, Findings, Standing
from hummingbird.assembly.doctor.patient import Patient
from hummingbird.assembly.models import DIGEST, chain, price_overrides
from hummingbird.domain.errors import HummingbirdError, OperatorError
from hummingbird.domain.limits import DOCTOR_OUTPUT_TOKENS
from hummingbird.domain.messages import UserMessage
from hummingbird.ports.model import Model, ModelRequest

_KEYS = "set ANTHROPIC_API_KEY, GOOGLE_API_KEY or OPENAI_API_KEY, or name one in settings.model"


def model_checks(patient: Patient) -> Iterator[Check]:
    """One a model, however many workflows use it."""
    for name in _used(patient):
        yield Check("model", partial(_model, patient, name))
    others = [name for name in patient.settings.models_allowed if name not in _used(patient)]
    if others:
        yield Check("model", partial(_allowed, patient, others))


def _used(patient: Patient) -> tuple[str, ...]:
    """Without the `digest` that always comes last, unless it is the only one."""
    settings, found = patient.settings, dict[str, None]()
    for workflow in patient.configuration.workflows.values():
        model = settings.model if workflow.model is None else workflow.model
        fallbacks = settings.fallback_models if workflow.fallback_models is None else workflow.fallback_models
        names = chain(model, fallbacks, patient.environment)
        found.update(dict.fromkeys(names[:-1] or names))
    return tuple(found)


async def _model(patient: Patient, name: str) -> Findings:
    if name == DIGEST and not patient.settings.model:
        yield Standing.WARN, f"No key of a model is set, so `digest` reads logs by rules alone: {_KEYS}."
        return
    models = _models(patient)
    try:
        model = models.resolve(name)
        if not patient.try_model or name == DIGEST:
            asked = "" if name == DIGEST else "; --try-model asks it for a word, which costs next to nothing"
            yield Standing.OK, f"{model.name} has all that it needs{asked}."
            return
        await _answer(model)
        yield Standing.OK, f"{model.name} answers."
    except HummingbirdError as error:
        yield Standing.FAIL, f"{name}: {error}"
    finally:
        await models.close()


async def _allowed(patient: Patient, names: list[str]) -> Findings:
    """Those that people may choose in a command."""
    models = _models(patient)
    try:
        for name in names:
            try:
                models.resolve(name)
            except OperatorError as error:
                yield Standing.WARN, f"settings.models_allowed has {name}, which nobody can use: {error}"
            else:
                yield Standing.OK, f"{name}, which people may choose, has all that it needs."
    finally:
        await models.close()


def _models(patient: Patient) -> Models:
    settings = patient.settings
    return Models(
        patient.environment,
        now=SystemClock().now,
        model_regions=settings.model_regions,
        price_overrides=price_overrides(settings.prices),
        ca_bundle=settings.ca_bundle or None,
    )


async def _answer(model: Model) -> None:
    """Raises ProviderError, CredentialRefused, CreditExhausted."""
    request = ModelRequest(
        system="You are asked by a program that checks whether you can be reached.",
        tools=(),
        messages=[UserMessage("Answer with the word: yes")],
        session_id="doctor",
        call_id=uuid4().hex,
        max_output_tokens=DOCTOR_OUTPUT_TOKENS,
    )
    await model.generate(request)
