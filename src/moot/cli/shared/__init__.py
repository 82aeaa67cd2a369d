"""Code that the commands share: calls, output, options and parsing."""
