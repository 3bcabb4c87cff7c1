"""Kinds of values that settings are made of: what is accepted, and the sentence for what is not.

A sentence says what was expected and never repeats the value.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

FORBIDDEN_PREFIX = "ORCHESTRATOR_"
VARIABLE = re.compile(rf"(?!{FORBIDDEN_PREFIX})[A-Z_][A-Z0-9_]*", re.IGNORECASE | re.ASCII)
PROJECT = re.compile(r"(?!(?:.*/)?\.{1,2}(?:/|$))[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+")  # . and .. would leave it
_QUANTITY = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?(?:m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_TENANT = re.compile(r"/ns/[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?/?")
_WORKFLOW = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PREFIX = re.compile(r"/[A-Za-z0-9][A-Za-z0-9_-]*")
_STORE = re.compile(r"(?:s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._-]+)*/?")
_MARKER = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9_])*")


class Part(BaseModel):
    """A section of the file: frozen, nothing is converted, and keys that nobody knows are faults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _nothing_written(cls, value: object) -> object:
        """`settings:` with nothing behind it is a section that leaves everything as it is."""
        return {} if value is None else value


def fault(sentence: str) -> PydanticCustomError:
    """`sentence` says what was expected, in lower case and without a full stop."""
    return PydanticCustomError("expected", "{sentence}", {"sentence": sentence})


def _matching(pattern: re.Pattern[str], sentence: str) -> Callable[[str], str]:
    def checked(value: str) -> str:
        if not pattern.fullmatch(value):
            raise fault(sentence)
        return value

    return checked


def _variable(value: str) -> str:
    if value.upper().startswith(FORBIDDEN_PREFIX):
        raise fault(
            f"expected a variable whose name does not begin with {FORBIDDEN_PREFIX}: those hold tokens that write, and "
            "nothing in this file may name them"
        )
    if value and not VARIABLE.fullmatch(value):
        raise fault("expected the name of an environment variable, like GITLAB_TOKEN_RO, never the secret itself")
    return value


def _address(value: str) -> str:
    try:
        parts = urlsplit(value)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        sound = sound and "@" not in parts.netloc and value.isprintable() and " " not in value
    except ValueError:
        sound = False
    if value and not sound:
        raise fault("expected an address like https://host.example/path, without a user or a password")
    return value


def _place(value: str) -> str:
    if set(value) & set("?#\\"):
        raise fault("expected an address without a question mark or a fragment: paths are put behind it")
    return value


def _cluster(value: str) -> str:
    if not _TENANT.fullmatch(urlsplit(value).path):
        raise fault("expected an address with the tenant's path, like https://api.cluster.example:6443/ns/TENANT")
    return value


def _expression(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise fault("expected a regular expression as Python knows them") from error
    return value


def _line(value: str) -> str:
    if not value.isprintable():
        raise fault("expected text on one line")
    return value


def _store(value: str) -> str:
    if "://" in value and not _STORE.fullmatch(value):
        raise fault(
            "expected a directory, or an address like s3://bucket, gs://bucket or az://container, each with or "
            "without a path"
        )
    return value


def _quantity(value: object) -> object:
    """Kubernetes takes numbers without quotes, too."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _money(value: object) -> object:
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


# A key with nothing behind it, all of it commented out perhaps, is an empty one.
_EMPTY_LIST = BeforeValidator(lambda value: () if value is None else value)
_EMPTY_MAPPING = BeforeValidator(lambda value: {} if value is None else value)
Named = TypeVar("Named")
Value = TypeVar("Value")

Line = Annotated[str, AfterValidator(_line)]
Store = Annotated[Line, AfterValidator(_store)]
Variable = Annotated[
    str, AfterValidator(_variable), Field(json_schema_extra={"pattern": "^(?!ORCHESTRATOR_)([A-Za-z_][A-Za-z0-9_]*)?$"})
]
Address = Annotated[str, AfterValidator(_address), Field(json_schema_extra={"pattern": "^(https?://.+)?$"})]
Server = Annotated[Address, AfterValidator(_place)]
Cluster = Annotated[Server, AfterValidator(_cluster)]
Engine = Annotated[str, Field(pattern="^[a-z][a-z0-9_-]{0,63}$")]  # of a full context (L20)
Expression = Annotated[str, AfterValidator(_expression), Field(json_schema_extra={"format": "regex"})]
Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    AfterValidator(_matching(_QUANTITY, 'expected a quantity as Kubernetes writes them, like "100m" or "1Gi"')),
    WithJsonSchema({"type": ["string", "number"]}),
]
Money = Annotated[Decimal, BeforeValidator(_money), Field(gt=0), WithJsonSchema({"type": "number", "minimum": 0})]
Price = Annotated[Decimal, BeforeValidator(_money), Field(ge=0), WithJsonSchema({"type": "number", "minimum": 0})]
ProjectPath = Annotated[
    str,
    AfterValidator(
        lambda value: value if value == "*" or PROJECT.fullmatch(value) else _refuse_project()  # * is every other one
    ),
]
WorkflowName = Annotated[
    str, AfterValidator(_matching(_WORKFLOW, "expected a name of letters, digits, - and _, since people type it"))
]
Prefix = Annotated[str, AfterValidator(_matching(_PREFIX, "expected a word after a slash, like /hummingbird"))]
Marker = Annotated[str, AfterValidator(_matching(_MARKER, "expected a word like hummingbird-session"))]
Texts = Annotated[tuple[Line, ...], Field(strict=False), _EMPTY_LIST]
Servers = Annotated[tuple[Server, ...], Field(strict=False), _EMPTY_LIST]
Variables = Annotated[tuple[Variable, ...], Field(strict=False), _EMPTY_LIST]
Expressions = Annotated[tuple[Expression, ...], Field(strict=False), _EMPTY_LIST]
ProjectPaths = Annotated[tuple[ProjectPath, ...], Field(strict=False), _EMPTY_LIST]
Ids = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False), _EMPTY_LIST]
Names = Annotated[Mapping[Named, Value], _EMPTY_MAPPING, AfterValidator(MappingProxyType)]
"""A mapping that cannot be changed."""


def _refuse_project() -> Any:
    raise fault("expected the path of a project, like group/project")
