"""The engine in virtual time: what goes wrong, and what must hold then."""
