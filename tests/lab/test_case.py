"""A case's folder: found by name or place, read with its addresses filled in."""

import shutil
from pathlib import Path

import pytest

from hummingbird.lab.case import CASES_FOLDER, CaseNotFound, LabCase, case_names, find_case


def test_a_case_is_found_by_its_name_and_by_its_folder(tmp_path: Path) -> None:
    shutil.copytree(CASES_FOLDER / "disk-full", tmp_path / "mine")
    assert find_case("disk-full").folder == CASES_FOLDER / "disk-full"
    assert find_case(str(tmp_path / "mine")).description == find_case("disk-full").description
    assert find_case(str(tmp_path / "mine")).name == "mine"


def test_the_folder_one_stands_in_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CASES_FOLDER / "disk-full", tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    assert find_case(".").name == "mine"


@pytest.mark.parametrize("name", ["nope", "", "..", "disk-full/gitlab"])
def test_an_unknown_case_is_refused_with_the_names_of_all(name: str) -> None:
    with pytest.raises(CaseNotFound) as refused:
        find_case(name)
    assert all(each in str(refused.value) for each in case_names())


def test_a_folder_without_a_case_is_not_listed() -> None:
    assert case_names() == sorted(each.name for each in CASES_FOLDER.iterdir() if (each / "case.json").is_file())
    assert "out-of-memory" in case_names()


def test_known_placeholders_are_filled_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('["{{gitlab}}/a", "{{konflux}}", "{{gitlab}}"]')
    case = LabCase(tmp_path, {"gitlab": "http://127.0.0.1:1"})
    assert case.read_json("x.json") == ["http://127.0.0.1:1/a", "{{konflux}}", "http://127.0.0.1:1"]


def test_what_is_not_there_is_what_was_asked_for_instead(tmp_path: Path) -> None:
    assert LabCase(tmp_path).read_json("none.json") is None
    assert LabCase(tmp_path).read_json("none.json", []) == []
    assert LabCase(tmp_path).list_files("none") == []


def test_a_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text("{")
    with pytest.raises(ValueError, match=r"case\.json of the case .* is not JSON"):
        _ = LabCase(tmp_path).description


def test_files_come_in_order_and_without_folders(tmp_path: Path) -> None:
    for name in ("b/z.json", "a.json", "b/y.log"):
        (tmp_path / "part" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "part" / name).touch()
    case = LabCase(tmp_path)
    assert [each.name for each in case.list_files("part")] == ["a.json", "y.log", "z.json"]
    assert [each.name for each in case.list_files("part", "*.json")] == ["a.json", "z.json"]
