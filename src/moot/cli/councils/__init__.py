"""Councils on the command line: convene, follow and take part."""
