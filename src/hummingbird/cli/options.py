"""Options that several commands have, so that they are the same everywhere. Loads nothing but click."""

import click

config_file = click.option(
    "--config",
    "config",
    metavar="FILE",
    help="The configuration (default: $CONFIG_PATH, then ./hummingbird.yaml, then the embedded defaults).",
)
verbose = click.option("--verbose", "-v", is_flag=True, expose_value=False, help="Show tracebacks too.")
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
