"""Tests of the configuration: faults, defaults, the schema, reloading."""
