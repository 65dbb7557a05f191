"""This package wraps references: for transformed inputs or targets, and for several outputs or classes."""
