"""What the tests share: real servers, and a client that is nobody's library."""
