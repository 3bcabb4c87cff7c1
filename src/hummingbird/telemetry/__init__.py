"""Telemetry: Prometheus metrics, OpenTelemetry traces, and error reports to Sentry.

Metrics and traces never contain the content of a run: no message, no argument, no result, no project name.
"""
