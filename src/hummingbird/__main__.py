"""Run the command line with `python -m hummingbird`."""

from hummingbird.cli.main import main

if __name__ == "__main__":
    main()
