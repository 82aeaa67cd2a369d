"""Start the command line; Ctrl-C ends it quietly, even while modules are imported."""

import sys


def main() -> None:
    try:
        from moot import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
