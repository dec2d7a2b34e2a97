"""What `make demo` shows: a network trained here and now, and a page about what it learned."""
