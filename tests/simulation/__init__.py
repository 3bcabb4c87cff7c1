"""Deterministic simulation: several replicas of the real service in one process, on virtual time, in a bad world.

See docs/reliability.md. `python -m tests.simulation --seeds 1000` plays a thousand worlds, `--seed 42 -v` plays one.
"""
