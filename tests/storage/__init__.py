"""Tests of the stores on real files and with real processes."""
