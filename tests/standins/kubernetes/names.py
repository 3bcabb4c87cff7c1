"""What may be a name, a label or an annotation key. Labels are the stricter ones, and the ones people get wrong."""

import re
from collections.abc import Iterator

from hummingbird.lab.kubernetes_api.access import FieldFault, Raw, field_invalid
from tests.standins.kubernetes.api_errors import field_required

_LABEL_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


def metadata_faults(metadata: Raw) -> list[FieldFault]:
    return [
        *_name_faults(metadata),
        *_label_faults(metadata.get("labels") or {}),
        *_annotation_faults(metadata.get("annotations") or {}),
    ]


def _name_faults(metadata: Raw) -> Iterator[FieldFault]:
    name = metadata.get("name", "")
    if not name:
        yield field_required("metadata.name", "name or generateName is required")
    elif len(name) > 253:
        yield field_invalid("metadata.name", name, "must be no more than 253 characters")
    elif not _SUBDOMAIN.fullmatch(name):
        yield field_invalid(
            "metadata.name", name, _described("a lowercase RFC 1123 subdomain", "lower case ", "-' or '.", name)
        )


def label_name_fault(field: str, name: str) -> FieldFault | None:
    """For containers and volumes: one DNS label."""
    if not name:
        return field_required(field)
    if len(name) <= 63 and _LABEL_1123.fullmatch(name):
        return None
    return field_invalid(field, name, _described("a lowercase RFC 1123 label", "lower case ", "-", name))


def _label_faults(labels: Raw) -> Iterator[FieldFault]:
    for key, value in labels.items():
        if fault := _key_fault("metadata.labels", key):
            yield fault
        if len(value) > 63:
            yield field_invalid("metadata.labels", value, "must be no more than 63 bytes")
        elif not _VALUE.fullmatch(value):
            yield field_invalid("metadata.labels", value, _described("a valid label", "", "-', '_' or '.", value))


def _annotation_faults(annotations: Raw) -> Iterator[FieldFault]:
    for key in annotations:
        if fault := _key_fault("metadata.annotations", key):
            yield fault
    if sum(len(key) + len(value.encode()) for key, value in annotations.items()) > 262144:
        yield FieldFault("metadata.annotations", "FieldValueTooLong", "Too long: may not be more than 262144 bytes")


def _key_fault(field: str, key: str) -> FieldFault | None:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        words = _described("prefix part a lowercase RFC 1123 subdomain", "lower case ", "-' or '.", prefix)
        return field_invalid(field, key, words)
    if len(name) > 63:
        return field_invalid(field, key, "name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        return field_invalid(field, key, _described("name part", "", "-', '_' or '.", name))
    return None


def _described(what: str, case: str, signs: str, given: str) -> str:
    return (
        f"{what} must consist of {case}alphanumeric characters, '{signs}', and must start and end with an "
        f"alphanumeric character (it is {given!r})"
    )
