"""Find, read, check and watch the configuration file.

Loading collects all faults and reports them together. It reads the file and the prompts it names. The environment is
an argument, and the loader only checks whether the named variables are set.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from hummingbird.config.configuration import ConfigFile, Configuration
from hummingbird.config.document import (
    WHOLE_FILE,
    ConfigDocument,
    ConfigFault,
    DocumentUnreadable,
    KeyPath,
    faults_error,
    format_key_path,
    read_document,
)
from hummingbird.config.settings import GitLabSourceSettings, Settings, WorkflowSettings
from hummingbird.config.validation import find_prompts, find_variables, validate_document
from hummingbird.core.errors import ConfigurationError
from hummingbird.core.limits import CONFIG_BYTES, PROMPT_BYTES

# These two variables apply only when there is no configuration file: a file states both values itself.
URL_VARIABLE = "GITLAB_URL"
READ_VARIABLE = "GITLAB_TOKEN_RO"
# Files with certificates that other programs of the operator use; the first that is set counts where the file names
# none. Without this, each of our clients would know another one of them.
CERTIFICATE_VARIABLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


def apply_environment(found: ConfigFile, environment: Mapping[str, str]) -> ConfigFile | ConfigFault:
    """Return the embedded defaults with the GitLab address and the read token that the environment names."""
    url = environment.get(URL_VARIABLE, "").strip()
    try:
        settings = Settings(gitlab_url=url) if url else found.settings
    except ValidationError:
        return ConfigFault(
            (), WHOLE_FILE, f"expected {URL_VARIABLE} to be the address of a GitLab, like https://gitlab.com"
        )
    workflows = found.workflows
    if environment.get(READ_VARIABLE, "").strip():
        workflows = MappingProxyType({name: _add_read_token(workflow) for name, workflow in workflows.items()})
    return found.model_copy(update={"settings": settings, "workflows": workflows})


def _add_read_token(workflow: WorkflowSettings) -> WorkflowSettings:
    sources = workflow.data_sources.model_copy(update={"gitlab": GitLabSourceSettings(token_env=READ_VARIABLE)})
    return workflow.model_copy(update={"data_sources": sources})


FILE_NAME = "hummingbird.yaml"
PATH_VARIABLE = "CONFIG_PATH"
EMBEDDED_NAME = "the embedded defaults"
_EMBEDDED_FILE = Path(__file__).parent / "embedded" / FILE_NAME


@dataclass(frozen=True, slots=True)
class ConfigLoadResult:
    """The outcome of loading. `configuration` is None if there are faults.

    `files` maps each file that was tried to its content, or None if it could not be read.
    """

    name: str
    configuration: Configuration | None
    faults: tuple[ConfigFault, ...]
    files: Mapping[Path, bytes | None]

    def get_configuration(self) -> Configuration:
        """Return the configuration. Raises ConfigurationError with all faults."""
        if self.configuration is None:
            raise faults_error(self.name, self.faults)
        return self.configuration


def find_config(option: str | None, environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the file named by --config or CONFIG_PATH, else hummingbird.yaml in `folder`; None: embedded defaults.

    A named file need not exist: loading it reports that.
    """
    named = option or environment.get(PATH_VARIABLE, "")
    if named:
        return folder / named
    usual = folder / FILE_NAME
    return usual if usual.exists() else None


def find_explicit_config(option: str | None, environment: Mapping[str, str], folder: Path) -> tuple[Path | None, str]:
    """Return the file named by --config or CONFIG_PATH, and a warning if hummingbird.yaml in `folder` is ignored.

    This is for commands that run in folders with other people's content. A hummingbird.yaml there may have come with
    a repository, and could name programs to start, rules that allow calls, and servers to send tokens to.
    """
    if option or environment.get(PATH_VARIABLE, ""):
        return find_config(option, environment, folder), ""
    if not (folder / FILE_NAME).exists():
        return None, ""
    return None, (
        f"The {FILE_NAME} of this folder is not read, since anybody could have put it there: name it with --config or "
        f"{PATH_VARIABLE} if it is yours."
    )


def load_config(path: Path | None, environment: Mapping[str, str] | None) -> Configuration:
    """Load the configuration as `examine_config` does. Raises ConfigurationError."""
    return examine_config(path, environment).get_configuration()


def examine_config(path: Path | None, environment: Mapping[str, str] | None) -> ConfigLoadResult:
    """Load a configuration and return it or its faults; never raise because of a file's content.

    Without a path it loads the embedded defaults. Without an environment it does not check whether variables are set.
    """
    name = str(path) if path else EMBEDDED_NAME
    reading = _ConfigFileReader()
    content = reading.read(path or _EMBEDDED_FILE)
    if isinstance(content, str):
        return ConfigLoadResult(name, None, (ConfigFault((), WHOLE_FILE, content),), reading.files)
    try:
        document = read_document(content)
    except DocumentUnreadable as error:
        return ConfigLoadResult(name, None, (error.fault,), reading.files)
    found, faults = validate_document(document)
    if path is None and found is not None and environment is not None:
        adapted = apply_environment(found, environment)
        if isinstance(adapted, ConfigFault):
            faults.append(adapted)
        else:
            found = adapted
    texts = _load_prompts(document, (path or _EMBEDDED_FILE).parent, reading, faults)
    faults += _find_unset_variables(document, environment)
    made = None if found is None or faults else _build_configuration(name, found, texts, environment)
    return ConfigLoadResult(name, made, tuple(faults), MappingProxyType(reading.files))


def _build_configuration(
    name: str, found: ConfigFile, texts: Mapping[str, str], given: Mapping[str, str] | None
) -> Configuration:
    settings, environment = found.settings, os.environ if given is None else given
    if not settings.ca_bundle:
        named = [file for name in CERTIFICATE_VARIABLES if (file := environment.get(name, "").strip())]
        settings = settings.model_copy(update={"ca_bundle": named[0]}) if named else settings
    return Configuration(name, settings, found.workflows, found.chat, MappingProxyType(texts))


@dataclass(slots=True)
class _ConfigFileReader:
    files: dict[Path, bytes | None] = field(default_factory=dict)

    def read(self, path: Path) -> bytes | str:
        content = read_config_file(path)
        self.files[path] = content if isinstance(content, bytes) else None
        return content


def read_config_file(path: Path) -> bytes | str:
    """Return the file's content as bytes, or the reason as text if it cannot be read.

    Reads at most one byte more than a file may have, so that the caller notices one that is too large. Does not open
    pipes and devices, which could block.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "expected a file that can be read, not a directory or a device"
        with path.open("rb") as file:
            return file.read(max(CONFIG_BYTES, PROMPT_BYTES) + 1)
    except OSError as error:
        return f"expected a file that can be read: {os.strerror(error.errno or 0).lower()}"
    except ValueError:  # a path with a null character
        return "expected a file that can be read: there is no such name"


def _load_prompts(
    document: ConfigDocument, folder: Path, reading: _ConfigFileReader, faults: list[ConfigFault]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, file in find_prompts(document):
        text = _decode_prompt(reading.read(folder / file))
        if isinstance(text, _PromptFault):
            faults.append(ConfigFault(path, document.position(path), text.sentence))
        else:
            found[str(path[1])] = text
    return found


@dataclass(frozen=True, slots=True)
class _PromptFault:
    sentence: str


def _decode_prompt(content: bytes | str) -> str | _PromptFault:
    if isinstance(content, str):
        return _PromptFault(content)
    if len(content) > PROMPT_BYTES:
        return _PromptFault(f"expected a file of at most {PROMPT_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _PromptFault("expected a file in UTF-8")
    return text if text.strip() else _PromptFault("expected a file with a prompt: this one is empty")


def _find_unset_variables(document: ConfigDocument, environment: Mapping[str, str] | None) -> Iterable[ConfigFault]:
    """Return one fault that lists all variables that are not set."""
    if environment is None:
        return ()
    wanted: dict[str, list[KeyPath]] = {}
    for path, name in find_variables(document):
        if not environment.get(name, "").strip():
            wanted.setdefault(name, []).append(path)
    if not wanted:
        return ()
    first = next(iter(wanted.values()))[0]
    names = ", ".join(f"{name} ({_format_locations(paths, document)})" for name, paths in wanted.items())
    return (ConfigFault(first, document.position(first), f"expected these environment variables to be set: {names}"),)


def _format_locations(paths: list[KeyPath], document: ConfigDocument) -> str:
    return ", ".join(f"{format_key_path(path)} in line {document.position(path).line}" for path in paths)


class ConfigWatcher:
    """Reload the configuration when the file or one of its prompts changes.

    The watcher has no thread and no timer: the service calls `poll` every few seconds. It compares the files' content,
    because a mounted ConfigMap may keep both date and size. `current` is always a configuration without faults.
    Running work keeps the configuration it started with.
    """

    def __init__(self, path: Path | None, environment: Mapping[str, str]) -> None:
        """Load the configuration. Raises ConfigurationError: the service must not start with a broken one."""
        self._path, self._environment = path, environment
        examined = examine_config(path, environment)
        self.current: Configuration = examined.get_configuration()
        self._known_digests = _file_digests(examined)

    def poll(self) -> Configuration | ConfigurationError | None:
        """Return the new configuration, or its error; None if nothing changed.

        An error is returned once per change, and `current` stays as it was.
        """
        if self._path is None or all(_file_digest(file) == seen for file, seen in self._known_digests.items()):
            return None
        examined = examine_config(self._path, self._environment)
        self._known_digests = _file_digests(examined)
        try:
            self.current = examined.get_configuration()
        except ConfigurationError as error:
            return error
        return self.current


def _file_digests(examined: ConfigLoadResult) -> dict[Path, str]:
    return {file: _content_digest(content) for file, content in examined.files.items()}


def _file_digest(file: Path) -> str:
    content = read_config_file(file)
    return _content_digest(content if isinstance(content, bytes) else None)


def _content_digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()
