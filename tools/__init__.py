"""Tools for those who work on Moot itself."""
