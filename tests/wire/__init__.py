"""Requests against the vendors' own types and against strict stand-ins of their servers."""
