"""Run the command line with `python -m hummingbird_agent`."""

from hummingbird.cli.main import main

if __name__ == "__main__":
    main()
