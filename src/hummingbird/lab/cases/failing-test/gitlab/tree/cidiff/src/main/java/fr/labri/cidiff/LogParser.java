package fr.labri.cidiff;

import java.util.ArrayList;
import java.util.List;

/** Turns the raw text of a job's log into lines with their step and time. */
public final class LogParser {
    /** Where the time ends in a line of a GitHub log: 2021-11-30T20:55:34.4417143Z */
    private static final int TIME_LENGTH = 28;

    public enum Type { CLASSIC, GITHUB }

    private final Type type;

    public LogParser(Type type) {
        this.type = type;
    }

    public List<LogLine> parse(List<String> raw) {
        List<LogLine> lines = new ArrayList<>();
        for (String line : raw) {
            lines.add(type == Type.GITHUB ? github(line) : new LogLine("", line));
        }
        return lines;
    }

    private LogLine github(String line) {
        String[] parts = line.split("\t", 3);
        if (parts.length < 3) {
            throw new IllegalArgumentException("Not a line of a GitHub log: " + line);
        }
        return new LogLine(parts[1], afterTime(parts[2]));
    }

    private static String afterTime(String text) {
        return text.length() <= TIME_LENGTH ? "" : text.substring(TIME_LENGTH + 1);
    }
}
