"""The Testing Farm source: three tools that read test requests and their artifacts.

Reports and logs are passed on as they are; `hummingbird.evidence` interprets them.
"""
