"""The bounds of what is told to those who watch the service (O1), each with its unit. Beside `limits`, by the same
rules."""

LABEL_VALUES = 100  # different ones of a label; whatever comes later counts as "other"
LABEL_CHARS = 100
TRACED_RUNS = 1_000  # that have begun and not ended: some go on elsewhere, and nobody tells
TELEMETRY_CLOSE_S = 5.0  # for what is still to be delivered when the service ends
TRACES_TRIED_S = 5.0  # for a collector to answer the doctor, tries again included
DELIVERY_REASON_CHARS = 300  # of why something was not delivered
BUG_TEXT_CHARS = 2_000  # of one text in a report of a bug
BUG_WARNINGS = 20  # of the same order, that are told with a bug
BUG_WARNINGS_KEPT = 500  # of all orders together
DEAD_LETTERS_S = 60.0  # between two looks at how many there are
