"""What others watch the service with: Prometheus, OpenTelemetry, Sentry.

Owns: metrics, spans, reports of bugs, and delivering them without disturbing anybody.
May touch: ports, domain.
Never: what was said in a run: no message, no argument, no result, no project's name.
"""
