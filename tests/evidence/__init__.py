"""Tests of the evidence room: bytes and objects in, regions out; no I/O but fixtures."""
