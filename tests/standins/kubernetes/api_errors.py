"""Errors of a Kubernetes API server for requests that write, worded like the real ones."""

from hummingbird.lab.kubernetes_api.access import ApiStatusError, FieldFault


def field_required(field: str, sentence: str = "") -> FieldFault:
    return FieldFault(field, "FieldValueRequired", f"Required value{f': {sentence}' if sentence else ''}")


def field_forbidden(field: str, sentence: str) -> FieldFault:
    return FieldFault(field, "FieldValueForbidden", f"Forbidden: {sentence}")


def field_not_supported(field: str, value: object, allowed: list[str]) -> FieldFault:
    words = ", ".join(f'"{each}"' for each in allowed)
    return FieldFault(field, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {words}')


def already_exists_error(resource: str, name: str) -> ApiStatusError:
    return ApiStatusError(409, "AlreadyExists", f'{resource} "{name}" already exists', {"name": name, "kind": resource})


def conflict_error(resource: str, name: str, sentence: str = "") -> ApiStatusError:
    why = sentence or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiStatusError(409, "Conflict", message, {"name": name, "kind": resource})


def media_type_error(given: str, taken: tuple[str, ...]) -> ApiStatusError:
    words = ", ".join(taken)
    sentence = f"the body of the request was in an unknown format - accepted media types include: {words}"
    return ApiStatusError(415, "UnsupportedMediaType", f"{sentence} (it was {given or 'not named'})")
