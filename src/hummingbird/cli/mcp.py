"""The options of `hummingbird mcp`. app.mcp_server does the work and is imported only when the command runs."""

import sys

import click

from hummingbird.cli.options import config_option


@click.command()
@config_option
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="For --http: address to listen on.")
@click.option(
    "--port", default=8090, show_default=True, type=click.IntRange(0, 65535), help="For --http: port; 0: any free one."
)
@click.option("--verbose", "-v", is_flag=True, help="Log more to standard error.")
def mcp(*, config: str | None, http: bool, host: str, port: int, verbose: bool) -> None:
    """Answer other agents: why did this pipeline fail? (MCP server)

    Coding agents start it and call its tools: why_did_pipeline_fail, explain_log, get_evidence, known_failures and
    search_sessions. No model takes part, and nothing is changed. It reads the projects of the configured workflows with
    their read tokens. Over HTTP, clients must show HUMMINGBIRD_MCP_TOKEN; on 127.0.0.1 a token is made up and printed
    if that is not set.

    \b
    Examples:
      claude mcp add hummingbird -- hummingbird mcp --config /path/hummingbird.yaml
      codex mcp add hummingbird -- hummingbird mcp --config /path/hummingbird.yaml
      HUMMINGBIRD_MCP_TOKEN=… hummingbird mcp --http --host 0.0.0.0
    """
    from hummingbird.app.mcp_server import mcp_command
    from hummingbird.core.errors import require_extra

    require_extra("mcp", "mcp", "This server")

    sys.exit(mcp_command(config, http=http, host=host, port=port, verbose=verbose))
