"""``python -m moot`` is ``moot``."""

from moot.start import main

main()
