"""Measurements beside rivals. They print; nothing here decides whether a build passes."""
