"""Run the command line with ``python -m moot.cli``."""

from moot.cli import main

main()
