"""Define the field types of the settings models, with the message for values that are not accepted.

A message says what was expected and never repeats the value.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

FORBIDDEN_PREFIX = "ORCHESTRATOR_"
VARIABLE = re.compile(rf"(?!{FORBIDDEN_PREFIX})[A-Z_][A-Z0-9_]*", re.IGNORECASE | re.ASCII)
PROJECT = re.compile(r"(?!(?:.*/)?\.{1,2}(?:/|$))[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+")  # no . or .. in URL paths
_QUANTITY = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?(?:m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_TENANT = re.compile(r"/ns/[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?/?")
_WORKFLOW = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PREFIX = re.compile(r"/[A-Za-z0-9][A-Za-z0-9_-]*")
_STORE = re.compile(r"(?:s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._-]+)*/?")
_MARKER = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9_])*")


class ConfigSection(BaseModel):
    """A section of the file: frozen, strict about types, and with an error for unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _accept_empty_section(cls, value: object) -> object:
        """Treat `settings:` with nothing after it as an empty section, so that all defaults apply."""
        return {} if value is None else value


def value_error(sentence: str) -> PydanticCustomError:
    """Create a validation error. `sentence` says what was expected, in lower case and without a full stop."""
    return PydanticCustomError("expected", "{sentence}", {"sentence": sentence})


def _pattern_validator(pattern: re.Pattern[str], sentence: str) -> Callable[[str], str]:
    def validate(value: str) -> str:
        if not pattern.fullmatch(value):
            raise value_error(sentence)
        return value

    return validate


def _check_variable(value: str) -> str:
    if value.upper().startswith(FORBIDDEN_PREFIX):
        raise value_error(
            f"expected a variable whose name does not begin with {FORBIDDEN_PREFIX}: those hold tokens that write, and "
            "nothing in this file may name them"
        )
    if value and not VARIABLE.fullmatch(value):
        raise value_error("expected the name of an environment variable, like GITLAB_TOKEN_RO, never the secret itself")
    return value


def _check_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        sound = sound and "@" not in parts.netloc and value.isprintable() and " " not in value
    except ValueError:
        sound = False
    if value and not sound:
        raise value_error("expected an address like https://host.example/path, without a user or a password")
    return value


def _check_server_url(value: str) -> str:
    if set(value) & set("?#\\"):
        raise value_error("expected an address without a question mark or a fragment: paths are put behind it")
    return value


def _check_cluster_url(value: str) -> str:
    if not _TENANT.fullmatch(urlsplit(value).path):
        raise value_error("expected an address with the tenant's path, like https://api.cluster.example:6443/ns/TENANT")
    return value


def _check_regex(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise value_error("expected a regular expression as Python knows them") from error
    return value


def _check_single_line(value: str) -> str:
    if not value.isprintable():
        raise value_error("expected text on one line")
    return value


def _check_store_url(value: str) -> str:
    if "://" in value and not _STORE.fullmatch(value):
        raise value_error(
            "expected a directory, or an address like s3://bucket, gs://bucket or az://container, each with or "
            "without a path"
        )
    return value


def _quantity_to_text(value: object) -> object:
    """Convert a number to text, because Kubernetes also accepts quantities without quotes."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _money_to_decimal(value: object) -> object:
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


# A key with nothing after it (perhaps because all of it is commented out) counts as empty.
_EMPTY_LIST = BeforeValidator(lambda value: () if value is None else value)
CitationChoice = Annotated[
    Literal["strict", "mark", "off"],
    BeforeValidator(lambda value: "off" if value is False else value),  # YAML reads a bare `off` as false
]
_EMPTY_MAPPING = BeforeValidator(lambda value: {} if value is None else value)
Named = TypeVar("Named")
Value = TypeVar("Value")

SingleLine = Annotated[str, AfterValidator(_check_single_line)]
StoreUrl = Annotated[SingleLine, AfterValidator(_check_store_url)]
EnvVariable = Annotated[
    str,
    AfterValidator(_check_variable),
    Field(json_schema_extra={"pattern": "^(?!ORCHESTRATOR_)([A-Za-z_][A-Za-z0-9_]*)?$"}),
]
Url = Annotated[str, AfterValidator(_check_url), Field(json_schema_extra={"pattern": "^(https?://.+)?$"})]
ServerUrl = Annotated[Url, AfterValidator(_check_server_url)]
ClusterUrl = Annotated[ServerUrl, AfterValidator(_check_cluster_url)]
ContextEngineName = Annotated[str, Field(pattern="^[a-z][a-z0-9_-]{0,63}$")]  # what handles a full context
RegexText = Annotated[str, AfterValidator(_check_regex), Field(json_schema_extra={"format": "regex"})]
Quantity = Annotated[
    str,
    BeforeValidator(_quantity_to_text),
    AfterValidator(
        _pattern_validator(_QUANTITY, 'expected a quantity as Kubernetes writes them, like "100m" or "1Gi"')
    ),
    WithJsonSchema({"type": ["string", "number"]}),
]
Money = Annotated[
    Decimal, BeforeValidator(_money_to_decimal), Field(gt=0), WithJsonSchema({"type": "number", "minimum": 0})
]
Price = Annotated[
    Decimal, BeforeValidator(_money_to_decimal), Field(ge=0), WithJsonSchema({"type": "number", "minimum": 0})
]
ProjectPath = Annotated[
    str,
    AfterValidator(
        lambda value: value if value == "*" or PROJECT.fullmatch(value) else _refuse_project()  # *: all other projects
    ),
]
WorkflowName = Annotated[
    str,
    AfterValidator(_pattern_validator(_WORKFLOW, "expected a name of letters, digits, - and _, since people type it")),
]
CommandPrefix = Annotated[
    str, AfterValidator(_pattern_validator(_PREFIX, "expected a word after a slash, like /hummingbird"))
]
MarkerWord = Annotated[str, AfterValidator(_pattern_validator(_MARKER, "expected a word like hummingbird-session"))]
SingleLines = Annotated[tuple[SingleLine, ...], Field(strict=False), _EMPTY_LIST]
ServerUrls = Annotated[tuple[ServerUrl, ...], Field(strict=False), _EMPTY_LIST]
EnvVariables = Annotated[tuple[EnvVariable, ...], Field(strict=False), _EMPTY_LIST]
RegexTexts = Annotated[tuple[RegexText, ...], Field(strict=False), _EMPTY_LIST]
ProjectPaths = Annotated[tuple[ProjectPath, ...], Field(strict=False), _EMPTY_LIST]
UserIds = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False), _EMPTY_LIST]
FrozenMapping = Annotated[Mapping[Named, Value], _EMPTY_MAPPING, AfterValidator(MappingProxyType)]
"""A mapping that cannot be changed."""


def _refuse_project() -> Any:
    raise value_error("expected the path of a project, like group/project")
