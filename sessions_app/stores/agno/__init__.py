"""Sessions of agno."""
