"""The command line: one file a command."""

from gpsift.cli.app import app, main

__all__ = ["app", "main"]
