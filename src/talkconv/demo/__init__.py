"""The demo of `make demo`: it trains a small network and writes a page about what it learned."""
