"""Where the command ``moot`` begins: Ctrl-C ends it quietly, also while it is still being read."""

import sys


def main() -> None:
    try:
        from moot.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
