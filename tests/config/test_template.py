"""The file that one begins with holds every key, and nothing that the loader would not take."""

import re

from hummingbird.config.configuration import ConfigFile
from hummingbird.config.defaults import CONFIG_KEYS
from hummingbird.config.document import read_document
from hummingbird.config.template import render_template
from hummingbird.config.validation import validate_document

_COMMENTED_KEY = re.compile(r'(?m)^( *)# ( *(?:- )?[\w"/-]+:)(?= |$)')


def everything() -> ConfigFile:
    """As if somebody had taken every # away."""
    found, faults = validate_document(read_document(_COMMENTED_KEY.sub(r"\1\2", render_template()).encode()))
    assert faults == []
    assert found is not None
    return found


def test_it_is_sound_as_it_is() -> None:
    found, faults = validate_document(read_document(render_template().encode()))
    assert faults == []
    assert found is not None
    assert list(found.workflows) == ["analyze-failures", "code-review"]
    assert found.settings == ConfigFile().settings


def test_every_key_of_the_table_stands_in_it_with_its_meaning() -> None:
    text = render_template()
    active = ("workflows.*.trigger", "workflows.*.description", "workflows.*.prompt")
    for key, row in CONFIG_KEYS.items():
        name = key.rsplit(".", 1)[-1]
        assert re.search(rf"(?m)^[ #-]*{re.escape(name)}:.*  # {re.escape(row.meaning)}$", text) or key in active, key


def test_with_every_comment_taken_away_it_is_sound_and_means_the_defaults() -> None:
    """A default that is written means the same as one that is not."""
    found = everything()
    for section in (found.settings, found.settings.sandbox, found.chat, found.workflows["analyze-failures"]):
        assert section.model_fields_set == set(type(section).model_fields), "a key is missing"
    for key in set(type(found.settings).model_fields) - {"prices", "models"}:
        assert getattr(found.settings, key) == getattr(ConfigFile().settings, key), key
    assert found.settings.prices["MODEL"].output == 15
    assert found.settings.models["MODEL"].context_tokens == 32_768
    assert found.chat.permissions[0].action == "ask"
    assert found.chat.memory == ConfigFile().chat.memory
    assert set(found.workflows["analyze-failures"].projects) == {"*", "group/project"}
    assert found.workflows["analyze-failures"].data_sources.declared_names == ("gitlab", "konflux", "testing_farm")
