"""Claims decided in Redis or Valkey."""
