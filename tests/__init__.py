"""The tests of anarchon. A package, so that no other package named tests can take its place."""
