"""The pure core: decide commands, fold events, list pending work.

The core does not read a clock, draw a random number or touch the world. Times and ids come with the
command.
"""
