"""Programs that build and test anarchon; not part of the package."""
