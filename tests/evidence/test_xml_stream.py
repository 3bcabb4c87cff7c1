"""XML that is hostile, broken or mislabelled: kept as far as it goes, never an error, never expanded."""

import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hummingbird.core.limits import XML_DEPTH, XML_PIECE_BYTES, XML_TOKEN_BYTES
from hummingbird.evidence.reports.junit import ReportReader, read_report
from hummingbird.evidence.reports.report_cases import ParsedReport
from tests.evidence import sample_reports
from tests.thoroughly import ALL

MEBIBYTE = 1024 * 1024
FAILED = '<testcase name="größe"><failure message="zu groß">日本 ✗</failure></testcase>'


def peak_of(chunks: Iterable[bytes]) -> tuple[ParsedReport, int]:
    """What reading costs at most, beyond what is there before."""
    reader = ReportReader()
    tracemalloc.start()
    try:
        for chunk in chunks:
            reader.feed(chunk)
        return reader.report, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_entities_are_refused_before_anything_is_expanded() -> None:
    laughs = b"<!DOCTYPE t [<!ENTITY a 'aaaaaaaaaa'>" + b"".join(
        b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9)
    )
    report = read_report([laughs + b"]><testsuite><testcase name='&j;'><failure/></testcase></testsuite>"])
    assert "entities" in report.read_error
    assert report.cases == ()


def test_a_file_named_by_an_entity_is_not_read() -> None:
    report = read_report(
        [b'<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/hostname">]><testsuite><testcase name="&x;"/></testsuite>']
    )
    assert "entities" in report.read_error
    assert report.totals.cases == 0


def test_a_document_type_without_entities_does_no_harm() -> None:
    report = read_report([b'<!DOCTYPE testsuite SYSTEM "junit.dtd"><testsuite><testcase name="t"/></testsuite>'])
    assert (report.read_error, report.totals.passed) == ("", 1)


def test_elements_without_end_are_given_up_at_a_depth() -> None:
    report = read_report([b"<testsuite><testcase name='t'><failure message='kept'/></testcase>", b"<a>" * 3_000_000])
    assert str(XML_DEPTH) in report.read_error
    assert [case.message for case in report.cases] == ["kept"]


@pytest.mark.parametrize("start", [b"<!-- ", b"<testcase name='", b"<?pi "])
def test_a_tag_or_comment_without_end_is_given_up_before_it_is_held(start: bytes) -> None:
    chunk = b"x" * MEBIBYTE
    report, peak = peak_of([b"<testsuite>" + start, *[chunk] * 40])
    assert str(XML_TOKEN_BYTES) in report.read_error
    assert peak < 8 * XML_TOKEN_BYTES


@pytest.mark.thorough
def test_a_report_of_any_size_costs_the_same() -> None:
    case = b"<testcase name='t'><failure message='m'>" + b"a line of a trace\n" * 50_000 + b"</failure></testcase>"
    passed = b"<testcase name='p'><system-out>" + b"a line of output\n" * 50_000 + b"</system-out></testcase>"
    chunks = [(case + passed)[at : at + 65_536] for at in range(0, len(case + passed), 65_536)]
    count = 20 if ALL else 2
    few, peak = peak_of([b"<testsuite>", *chunks * count])
    many, peak_of_many = peak_of([b"<testsuite>", *chunks * 3 * count])
    assert (few.totals.failed, many.totals.failed) == (count, 3 * count)
    assert peak_of_many < peak + MEBIBYTE // 4


def test_a_report_that_ends_early_keeps_what_came_and_says_so() -> None:
    whole = sample_reports.SUREFIRE
    cut = whole[: whole.index(b'<testcase name="loads"') + 30]
    report = read_report([cut])
    assert report.recognised
    assert report.totals.failed == 1
    assert "ends before" in report.read_error


def test_a_report_that_stops_being_xml_keeps_what_came_and_names_the_line() -> None:
    report = read_report([b"<testsuite>\n<testcase name='a'><failure/></testcase>\n<testcase name=b/></testsuite>"])
    assert report.totals.failed == 1
    assert "line 3" in report.read_error


def test_what_follows_the_root_is_not_our_business() -> None:
    report = read_report([b"<testsuite><testcase name='a'/></testsuite>\nJob succeeded & <gone>"])
    assert (report.read_error, report.totals.passed) == ("", 1)


@pytest.mark.parametrize(
    ("declared", "real"),
    [
        ("UTF-8", "utf-8"),
        ("utf-16", "utf-8"),
        ("klingon", "utf-8"),
        ("zip", "utf-8"),
        ("unicode_escape", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16", "utf-16-le"),
        ("utf-16", "utf-16-be"),
        ("utf-8", "utf-8-sig"),
        ("gb18030", "gb18030"),
    ],
)
def test_the_declared_encoding_is_believed_only_when_it_can_be_true(declared: str, real: str) -> None:
    text = f'<?xml version="1.0" encoding="{declared}"?>\n<testsuite>{FAILED}</testsuite>'
    report = read_report([text.encode(real)])
    assert report.read_error == ""
    assert (report.cases[0].name, report.cases[0].message) == ("größe", "zu groß")
    assert report.cases[0].body[0].text == "日本 ✗"


def test_bytes_of_another_encoding_than_declared_cost_a_character_and_not_the_report() -> None:
    report = read_report(
        ['<?xml version="1.0" encoding="UTF-8"?><testsuite><testcase name="größe"/></testsuite>'.encode("latin-1")]
    )
    assert (report.read_error, report.totals.passed) == ("", 1)


def test_white_space_before_the_declaration_does_not_matter() -> None:
    assert read_report([b'\n  <?xml version="1.0"?><testsuite><testcase name="a"/></testsuite>']).totals.passed == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"{}",
        b"\x00" * 5_000,
        b"\x7fELF" + bytes(range(256)) * 40,
        b"<html><body><p>tests</p></body></html>",
        b'<assembly xmlns="urn:schemas-microsoft-com:asm.v1"><dependency/></assembly>',
        b"<project><dependencies/></project>",
    ],
)
def test_what_is_no_test_report_is_not_recognised(content: bytes) -> None:
    report = read_report([content])
    assert not report.recognised
    assert report.totals.cases == 0


@given(
    content=st.binary(max_size=600),
    prefix=st.sampled_from([b"", b"<testsuite>", b"<?xml version='1.0'?><testcase name='"]),
)
@example(content=b"&#" + b"9" * 40 + b";", prefix=b"<testsuite>")
def test_any_bytes_give_a_report_and_never_an_error(content: bytes, prefix: bytes) -> None:
    assert read_report([prefix + content]).totals.cases >= 0


@pytest.mark.thorough
@given(st.data())
def test_any_chunking_of_a_damaged_report_gives_the_same(draw: st.DataObject) -> None:
    content = bytearray(draw.draw(st.sampled_from(sorted(sample_reports.ALL.values()))))
    for _ in range(draw.draw(st.integers(0, 3))):
        content[draw.draw(st.integers(0, len(content) - 1))] = draw.draw(st.integers(0, 255))
    step = draw.draw(st.integers(1, 700))
    pieces = [bytes(content[at : at + step]) for at in range(0, len(content), step)]
    assert read_report(pieces) == read_report([bytes(content)])


@pytest.mark.parametrize("step", [1, 7, XML_PIECE_BYTES - 1, XML_PIECE_BYTES + 1])
def test_a_report_longer_than_a_piece_reads_the_same_however_it_is_cut(step: int) -> None:
    content = (
        "<testsuite>" + FAILED.replace("zu groß", "zu groß &amp; &#27;[1mmehr &lt;") * 400 + "</testsuite>"
    ).encode()
    pieces = [content[at : at + step] for at in range(0, len(content), step)]
    report = read_report(pieces)
    assert report == read_report([content])
    assert report.totals.failed == 400


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("step", [1, 11])
def test_asking_in_between_changes_nothing(encoding: str, step: int) -> None:
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?><testsuite><testcase name="größe"><failure message="&#27;[1mß"/>'
    )
    content = (text + "</testcase></testsuite>").encode(encoding)
    reader = ReportReader()
    for at in range(0, len(content), step):
        reader.feed(content[at : at + step])
        assert reader.report.totals.cases <= 1
    assert reader.report == read_report([content])
    assert reader.report.totals.failed == 1
    assert reader.report.cases[0].name == "größe"
