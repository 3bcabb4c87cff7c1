"""Read `hummingbird.yaml` into frozen settings, check them, explain them and watch the file for changes.

The configuration only names the environment variables that hold secrets. This package never reads the value of a
token that can write to GitLab.
"""
