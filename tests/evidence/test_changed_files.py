"""Which changed file the text of a failure names, and what kind of file it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.evidence.changed_files import (
    find_failed_test_file,
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
        ("/venv/site-packages/rocket/fuel/tank.py:3", ["rocket/fuel/tank.py"], "rocket/fuel/tank.py"),
        ("/venv/site-packages/rocket/fuel/tank.py:3", ["src/rocket/fuel/tank.py"], "src/rocket/fuel/tank.py"),
        ("/venv/site-packages/rocket/fuel/tank.py:3", ["fuel/tank.py"], ""),
        ("Build file '/home/runner/work/a/a/build.gradle' line: 63", ["build.gradle"], "build.gradle"),
        ("Build file '/home/runner/work/a/a/wing/build.gradle' line: 63", ["build.gradle"], ""),
        (
            "target/gen/org/example/wing/Flap.java:3",
            ["src/org/example/wing/Flap.java"],
            "src/org/example/wing/Flap.java",
        ),
        ("target/gen/wing/Flap.java:3", ["src/wing/Flap.java"], ""),
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
        'The command "eval ./gradlew assemble" failed. Retrying, 2 of 3.',
        "[ERROR] src/Engine.java:[45,29] [deprecation] Start in org.example has been deprecated",
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
    assert not mentions_changed_file("/home/a/engine/src/Wing.java:3: error: cannot find symbol", ["src/engine.java"])


def test_warnings_are_trouble_where_they_count_as_errors() -> None:
    line = "docs/engine.rst:7: WARNING: document isn't included in any toctree"
    assert select_telling_lines(line) == ""
    assert line in select_telling_lines(f"Warning, treated as error:\n{line}")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (
            "Tests run: 1, Failures: 1 <<< FAILURE! - in org.example.EngineTest",
            "a/src/test/org/example/EngineTest.java",
        ),
        ("starts(org.example.EngineTest)  Time elapsed: 0.1 sec  <<< ERROR!", "src/test/org/example/EngineTest.java"),
        ("[ERROR]   EngineTest>BaseTest.starts:12 expected:<1> but was:<2>", "src/test/org/example/EngineTest.java"),
        ("org.example.EngineTest > starts FAILED", "test/org/example/EngineTest.kt"),
        ("FAILED tests/test_engine.py::test_starts - AssertionError", "tests/test_engine.py"),
        ("ERROR: test_starts (rocket.tests.test_engine.EngineTest)", "src/rocket/tests/test_engine.py"),
        ("rspec ./spec/engine_spec.rb:12 # Engine starts", "spec/engine_spec.rb"),
        ("FAIL src/engine.test.ts", "src/engine.test.ts"),
        ("1) App\\Tests\\EngineTest::testStarts", "lib/App/Tests/EngineTest.php"),
    ],
)
def test_failed_test_is_found_in_the_changed_files(line: str, path: str) -> None:
    assert find_failed_test_file(line, ["docs/a.md", path]) == path
    assert find_failed_test_file(line, ["docs/a.md", path.replace("ngine", "xhaust")]) == ""


def test_tests_of_many_classes_or_of_the_whole_accuse_no_change() -> None:
    many = "\n".join(f"org.example.Part{letter}Test > starts FAILED" for letter in "ABCDE")
    assert find_failed_test_file(many, ["test/org/example/PartATest.java"]) == ""
    assert find_failed_test_file("org.example.RocketIT > flies FAILED", ["test/org/example/RocketIT.java"]) == ""
    assert find_failed_test_file("", ["gradlew"]) == ""
