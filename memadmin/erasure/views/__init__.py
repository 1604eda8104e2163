"""Pages of requests of people."""
