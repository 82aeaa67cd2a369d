"""Configuration: settings, the project file, and the location of the server."""
