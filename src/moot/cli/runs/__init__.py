"""Runs on the command line: start, list, follow and explain them."""
