"""`python -m unswayed`, and the installed command."""

import sys


def run() -> None:
    """Run the command line and exit with its code."""
    from unswayed.cli import main

    sys.exit(main())


if __name__ == "__main__":
    run()
