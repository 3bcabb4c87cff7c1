"""Which changed file the text of a failure names, and what kind of file it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.evidence.changed_files import (
    find_named_file,
    find_tested_file,
    is_configuration_file,
    is_job_environment_file,
    mentions_changed_file,
    select_telling_lines,
)


@pytest.mark.parametrize(
    ("text", "changed", "named"),
    [
        ("src/engine.c:3:1: error", ["src/engine.c"], "src/engine.c"),
        ("/builds/group/rocket/src/engine.c(3)", ["src/engine.c"], "src/engine.c"),
        (r"C:\builds\rocket\src\engine.c", ["src/engine.c"], "src/engine.c"),
        ('  File "./src/engine.py", line 3', ["src/engine.py"], "src/engine.py"),
        ("at LogDifferTest.java:61", ["a/b/LogDifferTest.java"], "a/b/LogDifferTest.java"),
        ("at LogDifferTest.java:61", ["a/LogDifferTest.java", "b/LogDifferTest.java"], ""),
        ("b/LogDifferTest.java:61", ["a/LogDifferTest.java", "b/LogDifferTest.java"], "b/LogDifferTest.java"),
        ("other/engine.c:3: error", ["src/engine.c"], ""),
        ("src/engine.cpp:3: error", ["src/engine.c"], ""),
        ("my_engine.c:3: error", ["src/engine.c"], ""),
        ("utils.py:3: error", ["src/utils.py"], ""),
        ("src/utils.py:3: error", ["src/utils.py"], "src/utils.py"),
        ("/usr/lib/python3/site-packages/src/engine.py:3", ["src/engine.py"], ""),
        ("node_modules/a/src/engine.js:3", ["src/engine.js"], ""),
        ("README.md is missing", ["README.md"], ""),
        ("", ["src/engine.c"], ""),
        ("src/engine.c", [], ""),
    ],
)
def test_a_file_is_named_by_its_path_or_by_an_end_that_can_mean_nothing_else(
    text: str, changed: list[str], named: str
) -> None:
    assert find_named_file(text, changed) == named


@pytest.mark.thorough
@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=30), max_size=5))
def test_whatever_the_text_only_a_changed_file_is_named(text: str, changed: list[str]) -> None:
    assert find_named_file(text, changed) in {"", *changed}


@pytest.mark.parametrize("path", [".gitlab-ci.yml", "ci/build.yml", "web/package-lock.json", "Dockerfile", "uv.lock"])
def test_files_that_say_how_things_are_built_are_settings(path: str) -> None:
    assert is_configuration_file(path)


@pytest.mark.parametrize(
    "path", ["src/engine.c", "src/it/a/pom.xml", "tests/demo/package.json", "docs/ci.md", "lib/locks.py", "circus/a.py"]
)
def test_files_that_say_what_things_do_are_none(path: str) -> None:
    assert not is_configuration_file(path)


@pytest.mark.parametrize(
    "path", [".gitlab-ci.yml", "a/build.gitlab-ci.yml", "templates/a.yaml", "ci/a.sh", ".gitmodules"]
)
def test_files_that_say_where_jobs_run(path: str) -> None:
    assert is_job_environment_file(path)


@pytest.mark.parametrize("path", ["src/ci.c", "docker-compose.yml", "api/circuits.yml", "docs/templates.md"])
def test_files_that_do_not_say_where_jobs_run(path: str) -> None:
    assert not is_job_environment_file(path)


@pytest.mark.parametrize(
    "line",
    [
        "src/engine.c:3: something",
        "  at org.example.Engine.start(Engine.java:40)",
        '  File "src/engine.py", line 3, in start',
        "FAILED tests/test_engine.py::test_start",
        "src/engine.py is not formatted",
        "Missing header in: src/engine.py",
        "src/engine.c",
    ],
)
def test_line_tells_of_a_file_that_is_wrong(line: str) -> None:
    assert select_telling_lines(line) == line


@pytest.mark.parametrize(
    "line",
    [
        "src/engine.py        120     30    75%   12-15",
        "copying src/engine.py -> build/lib",
        "Installing /home/me/engine/pom.xml to /home/me/.m2/engine.pom",
        "src/engine.c:3:1: warning: unused variable",
        'The command "python tests/test_engine.py" exited with 1.',
        "src/a.py\nsrc/b.py\nsrc/c.py",
    ],
)
def test_line_mentions_a_file_in_passing(line: str) -> None:
    assert select_telling_lines(line) == ""


@pytest.mark.parametrize(
    ("text", "changed", "tested"),
    [
        ("FAIL: EngineTest.starts", ["src/Engine.java"], "src/Engine.java"),
        ("test_engine fails", ["src/engine.py"], "src/engine.py"),
        ("LogReaderTests", ["a/log_reader.py"], "a/log_reader.py"),
        ("TestEngine", ["src/engine.go", "docs/a.md"], "src/engine.go"),
        ("EngineTest", ["a/Engine.java", "b/Engine.java"], ""),
        ("EngineTest", ["src/Wing.java"], ""),
        ("the engine fails", ["src/engine.py"], ""),
        ("test_utils", ["src/utils.py"], ""),
        ("test_a", ["src/a.py"], ""),
    ],
)
def test_failing_test_names_what_it_tests(text: str, changed: list[str], tested: str) -> None:
    assert find_tested_file(text, changed) == tested


def test_compiler_speaks_of_a_class_in_a_changed_file() -> None:
    assert mentions_changed_file("error: cannot find symbol class Engine", ["src/Engine.java"])
    assert not mentions_changed_file("error: cannot find symbol class Engines", ["src/Engine.java"])
    assert not mentions_changed_file("error: cannot find module utils", ["src/utils.py"])
