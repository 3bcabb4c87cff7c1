package fr.labri.cidiff;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class LogDifferTest {
    private static final LogParser CLASSIC = new LogParser(LogParser.Type.CLASSIC);
    private static final LogParser GITHUB = new LogParser(LogParser.Type.GITHUB);

    // Every test compares as few lines as show its point.
    // The numbers are those of the differences, whatever their kind.

    private static List<LogLine> classic(String... lines) {
        return CLASSIC.parse(List.of(lines));
    }

    @Test
    void testEmptyLogs() {
        assertEquals(0, new LogDiffer().diff(classic(), classic()).size());
    }

    @Test
    void testSameLine() {
        assertEquals(0, new LogDiffer().diff(classic("a"), classic("a")).size());
    }

    @Test
    void testAddedLine() {
        assertEquals(1, new LogDiffer().diff(classic("a"), classic("a", "b")).size());
    }

    @Test
    void testDeletedLine() {
        assertEquals(1, new LogDiffer().diff(classic("a", "b"), classic("a")).size());
    }

    @Test
    void testUpdatedLine() {
        assertEquals(1, new LogDiffer().diff(classic("took 1 s"), classic("took 2 s")).size());
    }

    @Test
    void testMovedLine() {
        assertEquals(2, new LogDiffer().diff(classic("a", "b"), classic("b", "a")).size());
    }

    @Test
    void testClassicParsing() {
        assertEquals("a\tb", classic("a\tb").get(0).text());
    }

    @Test
    void testGithubParsing() {
        List<String> raw = List.of(
                "build\tcheckout\t2021-11-30T20:55:29.0275739Z git version 2.34.0",
                "build\tcheckout\t2021-11-30T20:55:29.0275801Z",
                "a line that the runner broke in two");

        List<LogLine> lines = GITHUB.parse(raw);

        assertEquals("git version 2.34.0", lines.get(0).text());
        assertEquals("", lines.get(1).text());
        assertEquals("a line that the runner broke in two", lines.get(2).text());
    }

    @Test
    void testSteps() {
        assertEquals("checkout", GITHUB.parse(List.of("build\tcheckout\t2021-11-30T20:55:29.0275801Z x")).get(0).step());
    }

    @Test
    void testTokens() {
        assertEquals(List.of("a", "b"), LogLine.tokens("a b"));
    }
}
