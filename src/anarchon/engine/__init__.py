"""What runs: when slots are due, who runs them, for how long. Its only I/O is given to it."""
