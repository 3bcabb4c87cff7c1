"""Tests of the floor everything stands on: values and projections, no I/O."""
