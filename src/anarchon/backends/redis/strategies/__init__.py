"""How one winner is picked."""
