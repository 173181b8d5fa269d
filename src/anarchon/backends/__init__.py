"""Where claims are decided."""
