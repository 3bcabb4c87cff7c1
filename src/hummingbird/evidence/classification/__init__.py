"""Classify failures by named rules over log lines, so that a person can disagree with a rule."""
