"""One small file a client library."""
