"""The documentation is run, and held against the code."""
