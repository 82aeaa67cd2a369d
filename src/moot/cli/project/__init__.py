"""A project on the command line: init, check, test, flows, models and tools."""
