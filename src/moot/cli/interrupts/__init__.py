"""Interrupts on the command line: the inbox, and answers of a person."""
