"""The readable specification: one idea a test, nothing going wrong that need not."""
