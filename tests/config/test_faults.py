"""Every fault, with its path, its line and what was expected; all at once."""

from pathlib import Path

import pytest

from hummingbird.config.document import faults_error, format_key_path
from hummingbird.config.loader import examine_config, load_config
from hummingbird.core.errors import ConfigurationError, OperatorError
from hummingbird.core.limits import CONFIG_BYTES, CONFIG_DEPTH, CONFIG_FAULTS
from tests.config.files import WORKFLOW, examined
from tests.config.files import written as written_file

KONFLUX = WORKFLOW + "    data_sources:\n      konflux:\n        "
PROJECT = WORKFLOW + "    projects:\n      "

# text, path, line, words of the sentence
FAULTS = {
    "unknown top level": ("setings: {}\n", "setings", 1, "perhaps 'settings' is meant"),
    "unknown setting": ("settings:\n  max_iteration: 3\n", "settings.max_iteration", 2, "perhaps 'max_iterations'"),
    "dashes for underscores": ("settings:\n  max-iterations: 3\n", "settings.max-iterations", 2, "'max_iterations'"),
    "nothing near": ("settings:\n  sandbox:\n    zzz: 3\n", "settings.sandbox.zzz", 3, "expected one of: active_d"),
    "unknown deep down": (PROJECT + "a/b:\n        tokns: {}\n", 'workflows.look.projects["a/b"].tokns', 6, "'tokens'"),
    "unknown in a list": (
        "chat:\n  permissions:\n    - action: deny\n      tol: x\n", "chat.permissions[0].tol", 4, "'tool'"
    ),
    "text for a number": ("settings:\n  max_iterations: many\n", "settings.max_iterations", 2, "a whole number"),
    "quoted number": ('settings:\n  max_iterations: "3"\n', "settings.max_iterations", 2, "a whole number"),
    "broken number": ("settings:\n  max_iterations: 3.5\n", "settings.max_iterations", 2, "a whole number"),
    "truth for a number": ("settings:\n  max_iterations: yes\n", "settings.max_iterations", 2, "a whole number"),
    "too small": ("settings:\n  max_iterations: 0\n", "settings.max_iterations", 2, "at least 1"),
    "too large": ("settings:\n  max_concurrent_agents: 5000\n", "settings.max_concurrent_agents", 2, "at most 1000"),
    "endless": ("settings:\n  config_poll_seconds: .inf\n", "settings.config_poll_seconds", 2, "a number"),
    "number for text": ("settings:\n  model: 3\n", "settings.model", 2, "put it in quotes"),
    "two lines for one": ('settings:\n  model: "a\\nb"\n', "settings.model", 2, "on one line"),
    "text for truth": ("settings:\n  internal_notes: perhaps\n", "settings.internal_notes", 2, "true or false"),
    "text for a list": ("settings:\n  fallback_models: digest\n", "settings.fallback_models", 2, "a list"),
    "text for a section": ("settings:\n  sandbox: podman\n", "settings.sandbox", 2, "a mapping"),
    "list for a section": ("settings:\n  model_regions: [a]\n", "settings.model_regions", 2, "a mapping"),
    "no such choice": ("settings:\n  sandbox:\n    backend: docker\n", "settings.sandbox.backend", 3, "'bubblewrap'"),
    "no address": ("settings:\n  gitlab_url: gitlab.com\n", "settings.gitlab_url", 2, "https://host.example"),
    "address with a password": ("settings:\n  docs_url: https://a:b@c.d\n", "settings.docs_url", 2, "without a user"),
    "broken address": ("settings:\n  docs_url: http://[a\n", "settings.docs_url", 2, "https://host.example"),
    "address with a query": ("settings:\n  gitlab_url: https://a.b/?c\n", "settings.gitlab_url", 2, "a question mark"),
    "no address at all": ("settings:\n  gitlab_url: ''\n", "settings.gitlab_url", 2, "expected some text"),
    "no quantity": (
        "settings:\n  sandbox:\n    resources:\n      limits:\n        memory: much\n",
        "settings.sandbox.resources.limits.memory", 5, "a quantity",
    ),
    "no prefix": ("settings:\n  trigger_prefix: bird\n", "settings.trigger_prefix", 2, "/hummingbird"),
    "no marker": ("settings:\n  session_marker_prefix: a -->\n", "settings.session_marker_prefix", 2, "a word like"),
    "two stores": (
        "settings:\n  s3_session_bucket: a\n  session_store: s3://b\n", "settings.session_store", 3, "not both"
    ),
    "no such store": ("settings:\n  session_store: ftp://a\n", "settings.session_store", 2, "s3://bucket"),
    "a store without a name": ("settings:\n  session_store: s3://\n", "settings.session_store", 2, "s3://bucket"),
    "events without work": (
        "settings:\n  sqs_queue_url: https://sqs.eu-west-1.amazonaws.com/1/a\n",
        "settings.sqs_queue_url", 2, "sqs_fifo_queue_url as well",
    ),
    "a cap below the wait": (
        "settings:\n  settle_seconds: 90\n  settle_cap_seconds: 60\n",
        "settings.settle_cap_seconds", 3, "no less than settle_seconds",
    ),
    "a wait above the cap": (
        "settings:\n  settle_seconds: 90000\n", "settings.settle_seconds", 2, "no less than settle_seconds"
    ),
    "no engine's name": (WORKFLOW + "    context: Make room\n", "workflows.look.context", 4, "pattern"),
    "negative money": ("settings:\n  budgets:\n    usd_per_day: -1\n", "settings.budgets.usd_per_day", 3, "above 0"),
    "money as text": ("settings:\n  budgets:\n    usd_per_day: lots\n", "settings.budgets.usd_per_day", 3, "a number"),
    "no prompt": ("workflows:\n  look:\n    model: x\n", "workflows.look.prompt", 2, "must be written"),
    "prompt not there": ("workflows:\n  look:\n    prompt: gone.md\n", "workflows.look.prompt", 3, "no such file"),
    "prompt is a directory": ("workflows:\n  look:\n    prompt: .\n", "workflows.look.prompt", 3, "not a directory"),
    "no workflow name": ("workflows:\n  a b: {prompt: look.md}\n", 'workflows["a b"]', 2, "letters, digits"),
    "no such trigger": (WORKFLOW + "    trigger: push\n", "workflows.look.trigger", 4, "'pipeline' or 'merge_request'"),
    "no such action": (WORKFLOW + "    action: mail\n", "workflows.look.action", 4, "'post_gitlab_note'"),
    "no expression": (WORKFLOW + "    ignore_users:\n    - '['\n", "workflows.look.ignore_users[0]", 5, "regular expr"),
    "no project path": (PROJECT + "project: {}\n", "workflows.look.projects.project", 5, "group/project"),
    "project twice": (PROJECT + "a/b: {}\n      A/B: {}\n", 'workflows.look.projects["A/B"]', 6, "GitLab ignores case"),
    "no such source": (
        WORKFLOW + "    data_sources:\n      gitlap: {}\n", "workflows.look.data_sources.gitlap", 5, "'gitlab'"
    ),
    "no cluster": (KONFLUX + "context: x\n", "workflows.look.data_sources.konflux.cluster_url", 5, "must be written"),
    "tenant elsewhere": (
        KONFLUX + "cluster_url: https://a.b/c/ns/d\n",
        "workflows.look.data_sources.konflux.cluster_url", 6, "/ns/TENANT",
    ),
    "no tenant": (
        KONFLUX + "cluster_url: https://a.b\n", "workflows.look.data_sources.konflux.cluster_url", 6, "/ns/TENANT"
    ),
    "forbidden variable": (
        WORKFLOW + "    data_sources:\n      gitlab:\n        token_env: ORCHESTRATOR_GITLAB_TOKEN\n",
        "workflows.look.data_sources.gitlab.token_env", 6, "does not begin with ORCHESTRATOR_",
    ),
    "forbidden in a project": (
        PROJECT + "a/b: {tokens: {gitlab: orchestrator_x}}\n",
        'workflows.look.projects["a/b"].tokens.gitlab', 5, "does not begin with ORCHESTRATOR_",
    ),
    "forbidden kubeconfig": (
        KONFLUX + "cluster_url: https://a.b/ns/c\n        kubeconfig_env: ORCHESTRATOR_K\n",
        "workflows.look.data_sources.konflux.kubeconfig_env", 7, "does not begin with ORCHESTRATOR_",
    ),
    "forbidden for a server": (
        "chat:\n  mcp_servers:\n    a: {command: b, env: [ORCHESTRATOR_C]}\n",
        "chat.mcp_servers.a.env[0]", 3, "does not begin with ORCHESTRATOR_",
    ),
    "no variable": (
        PROJECT + "a/b: {tokens: {gitlab: glpat-12345678901234567890}}\n",
        'workflows.look.projects["a/b"].tokens.gitlab', 5, "never the secret itself",
    ),
    "a rule without sense": (
        "chat:\n  permissions:\n    - {action: deny, argument: x}\n", "chat.permissions[0]", 3, "means something"
    ),
    "two ways in": (
        "chat:\n  mcp_servers:\n    a: {command: b, url: https://c.d}\n", "chat.mcp_servers.a", 3, "either `command` or"
    ),
    "key twice": ("settings:\n  model: a\n  model: b\n", "settings.model", 3, "twice, first in line 2"),
}  # fmt: skip

# of the text as a whole: text, line, words
WHOLE = {
    "empty": (b"", 1, "the file is empty"),
    "comments only": (b"# nothing\n\n", 1, "the file is empty"),
    "list": (b"- a\n", 1, "expected a mapping with `settings`"),
    "text": (b"hello\n", 1, "expected a mapping with `settings`"),
    "null": (b"---\n~\n", 2, "expected a mapping with `settings`"),
    "not UTF-8": (b"settings:\n  model: \xff\n", 2, "not UTF-8"),
    "UTF-16": ("settings: {}".encode("utf-16"), 1, "not UTF-8"),
    "huge": (b"# " + b"x" * CONFIG_BYTES, 0, "expected at most 262,144"),
    "tab": (b"settings:\n\tmodel: a\n", 2, "there is a tab"),
    "control character": (b"settings:\n  model: a\x00\n", 2, "YAML does not allow"),
    "two documents": (b"settings: {}\n---\nsettings: {}\n", 2, "expected one document"),
    "unclosed": (b"settings: {\n", 2, "expected YAML"),
    "tag": (b"settings: !!python/object:os.system {}\n", 1, "tags, which begin with !"),
    "no anchor": (b"settings: *gone\n", 1, "put text that begins with * in quotes"),
    "in itself": (b"settings: &a\n  model: *a\n", 2, "stands inside of itself"),
    "deep": (b"settings: " + b"[" * (CONFIG_DEPTH + 1), 1, f"at most {CONFIG_DEPTH} levels"),
    "escape of no character": (b'settings: "\\UFFFFFFFF"\n', 1, "means no character"),
    "half a character": (b'settings: "\\ud800"\n', 1, "means no character"),
    "bomb": (
        b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 10)) for n in range(ord("b"), ord("k"))),
        5,
        "with every alias written out",
    ),
}


@pytest.mark.parametrize(("text", "path", "line", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_says_where_it_is_and_what_was_expected(
    tmp_path: Path, text: str, path: str, line: int, words: str
) -> None:
    """And nothing else is found wrong."""
    faults = examined(tmp_path, text).faults
    assert [(format_key_path(fault.path), fault.position.line) for fault in faults] == [(path, line)]
    assert words in faults[0].expected


@pytest.mark.parametrize(("text", "line", "words"), WHOLE.values(), ids=WHOLE.keys())
def test_what_cannot_be_read_at_all_is_one_fault(tmp_path: Path, text: bytes, line: int, words: str) -> None:
    faults = examined(tmp_path, text).faults
    assert [(fault.path, fault.position.line) for fault in faults] == [((), line)]
    assert words in faults[0].expected


def test_the_column_is_told_too(tmp_path: Path) -> None:
    """Of a key that is unknown, and of a value that is wrong."""
    faults = examined(tmp_path, "settings:\n  modle: a\n  max_iterations: b\n").faults
    assert {(fault.position.line, fault.position.column) for fault in faults} == {(2, 3), (3, 19)}


def test_all_faults_are_told_at_once_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Settings, prompts and variables together; one hides no other."""
    text = """\
    settings:
      max_iterations: many
    workflows:
      look:
        prompt: gone.md
        data_sources:
          gitlab: {token_env: READ_TOKEN}
          konflux: {}
        trigger: push
    """
    with pytest.raises(ConfigurationError) as caught:
        load_config(written_file(tmp_path, text), {})
    assert [fault.split(":")[0].split(",")[0] for fault in caught.value.faults] == [
        f"line {number}" for number in (2, 5, 7, 8, 9)
    ]
    assert str(caught.value).startswith(f"Fix 5 things in {tmp_path / 'hummingbird.yaml'}:\n  line 2, column 19: ")
    assert isinstance(caught.value, OperatorError)


def test_missing_variables_are_one_message(tmp_path: Path) -> None:
    """With every place that names them; an empty one counts as missing."""
    text = (
        WORKFLOW + "    data_sources:\n      gitlab: {token_env: A}\n      testing_farm: {token_env: B}\n"
        "    projects:\n      a/b: {tokens: {gitlab: C}}\n      a/c: {tokens: {gitlab: A}}\n"
    )
    with pytest.raises(ConfigurationError) as caught:
        load_config(written_file(tmp_path, text), {"B": "set", "C": " "})
    (fault,) = caught.value.faults
    assert "A (workflows.look.data_sources.gitlab.token_env in line 5, " in fault
    assert 'workflows.look.projects["a/c"].tokens.gitlab in line 9)' in fault
    assert "C (" in fault
    assert "B (" not in fault


def test_variables_that_are_set_are_enough(tmp_path: Path) -> None:
    text = WORKFLOW + "    data_sources:\n      gitlab: {token_env: A}\n"
    assert load_config(written_file(tmp_path, text), {"A": "value"}).workflows["look"].data_sources.gitlab is not None


@pytest.mark.parametrize("sign", ["*", "!", "&", "%", "@", "`"])
def test_a_secret_that_begins_with_a_sign_of_yaml_is_not_repeated_either(tmp_path: Path, sign: str) -> None:
    faults = examined(tmp_path, f"settings:\n  model: {sign}sesame\n  max_iterations: {sign}sesame\n").faults
    assert faults
    assert "sesame" not in str(faults_error("it", faults))


@pytest.mark.parametrize("secret", ["glpat-abcdefghijklmnopqrst", "ORCHESTRATOR_sesame", "sk ant 123"])
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, secret: str) -> None:
    """Secrets are in the environment; a fault must not carry one into a log."""
    text = (
        f"settings:\n  max_iterations: {secret}\n  gitlab_url: {secret}\n  internal_notes: {secret}\n"
        + WORKFLOW
        + f"    trigger: {secret}\n    data_sources:\n      gitlab: {{token_env: {secret}}}\n"
    )
    faults = examined(tmp_path, text).faults
    assert len(faults) == 5
    assert secret not in str(faults_error("it", faults))


def test_many_faults_are_counted(tmp_path: Path) -> None:
    """A file of another program should not fill the screen."""
    faults = examined(tmp_path, "settings:\n" + "".join(f"  zz{n}: 1\n" for n in range(CONFIG_FAULTS + 7))).faults
    assert str(faults_error("it", faults)).splitlines()[-1] == "  … and 7 more."
    assert len(faults_error("it", faults).faults) == CONFIG_FAULTS + 7


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    """--config and CONFIG_PATH are never passed over."""
    with pytest.raises(ConfigurationError, match="no such file"):
        load_config(tmp_path / "gone.yaml", {})


def test_aliases_and_merges_mean_what_they_say(tmp_path: Path) -> None:
    """YAML's own way not to repeat oneself; what is written wins over what is merged."""
    text = """\
    workflows:
      one: &one
        prompt: look.md
        max_iterations: 3
        projects: &all {a/b: {}}
      two:
        <<: *one
        max_iterations: 4
      three: {<<: [*one], projects: *all}
    """
    result = examined(tmp_path, text)
    assert result.faults == ()
    assert result.configuration is not None
    workflows = result.configuration.workflows
    assert [workflows[name].max_iterations for name in ("one", "two", "three")] == [3, 4, 3]
    assert all(workflow.find_project("a/b") for workflow in workflows.values())


def test_a_fault_in_an_alias_is_told_for_each_use(tmp_path: Path) -> None:
    """With the line where it stands."""
    text = "workflows:\n  a: &a\n    prompt: look.md\n    trigger: x\n  b: *a\n"
    faults = examined(tmp_path, text).faults
    assert [(format_key_path(f.path), f.position.line) for f in faults] == [
        ("workflows.a.trigger", 4),
        ("workflows.b.trigger", 4),
    ]


def test_a_file_that_is_not_there_has_no_line(tmp_path: Path) -> None:
    """A place in a file that cannot be read would send people looking for it."""
    (fault,) = examine_config(tmp_path / "gone.yaml", None).faults
    assert str(fault) == "expected a file that can be read: no such file or directory."


@pytest.mark.parametrize("path", ["../other", "group/../other", "group/.", "./x"])
def test_a_path_that_leads_elsewhere_is_no_project(tmp_path: Path, path: str) -> None:
    """It becomes a part of addresses."""
    text = f"workflows:\n  look:\n    prompt: look.md\n    projects:\n      {path}: {{}}\n"
    (fault,) = examine_config(written_file(tmp_path, text), None).faults
    assert fault.expected == "expected the path of a project, like group/project"
