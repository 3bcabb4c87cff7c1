"""The API's no, in the words of the real one: every refusal is a Status object.

Knows the wording alone; who refuses what is decided elsewhere.
"""

from dataclasses import dataclass
from typing import Any

Raw = dict[str, Any]


class Refused(Exception):
    """An error answer; `status` is its body."""

    def __init__(self, code: int, reason: str, message: str, details: Raw | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status: Raw = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            **({"details": details} if details else {}),
            "code": code,
        }


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with an object: where, which kind of wrong, and the sentence."""

    field: str
    reason: str
    sentence: str

    @property
    def cause(self) -> Raw:
        return {"reason": self.reason, "message": self.sentence, "field": self.field}


def required(field: str, sentence: str = "") -> Fault:
    return Fault(field, "FieldValueRequired", f"Required value{f': {sentence}' if sentence else ''}")


def wrong(field: str, value: object, sentence: str) -> Fault:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Fault(field, "FieldValueInvalid", f"Invalid value: {shown}: {sentence}")


def barred(field: str, sentence: str) -> Fault:
    return Fault(field, "FieldValueForbidden", f"Forbidden: {sentence}")


def unsupported(field: str, value: object, allowed: list[str]) -> Fault:
    words = ", ".join(f'"{each}"' for each in allowed)
    return Fault(field, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {words}')


def invalid(kind: str, name: str, faults: list[Fault]) -> Refused:
    said = [f"{fault.field}: {fault.sentence}" for fault in faults]
    words = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details = {"name": name, "kind": kind, "causes": [fault.cause for fault in faults]}
    return Refused(422, "Invalid", f'{kind} "{name}" is invalid: {words}', details)


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def unauthorized() -> Refused:
    return Refused(401, "Unauthorized", "Unauthorized")


def forbidden(resource: str, name: str, sentence: str) -> Refused:
    what = f'{resource} "{name}"' if name else resource
    return Refused(403, "Forbidden", f"{what} is forbidden: {sentence}", _about(resource, name))


def not_found(resource: str, name: str) -> Refused:
    return Refused(404, "NotFound", f'{resource} "{name}" not found', _about(resource, name))


def _about(resource: str, name: str) -> Raw:
    """Details of a resource that is qualified by its group, where it has one: deployments.apps."""
    kind, _, group = resource.partition(".")
    return {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}


def no_such_path() -> Refused:
    return Refused(404, "NotFound", "the server could not find the requested resource")


def not_allowed() -> Refused:
    return Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def already_exists(resource: str, name: str) -> Refused:
    return Refused(409, "AlreadyExists", f'{resource} "{name}" already exists', {"name": name, "kind": resource})


def conflict(resource: str, name: str, sentence: str = "") -> Refused:
    why = sentence or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return Refused(409, "Conflict", message, {"name": name, "kind": resource})


def unsupported_type(given: str, taken: tuple[str, ...]) -> Refused:
    words = ", ".join(taken)
    sentence = f"the body of the request was in an unknown format - accepted media types include: {words}"
    return Refused(415, "UnsupportedMediaType", f"{sentence} (it was {given or 'not named'})")
