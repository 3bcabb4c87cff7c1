"""What a sandbox costs: per command, per byte and in memory, beside plain `subprocess` and `podman run --rm`."""
