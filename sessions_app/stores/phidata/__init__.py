"""Sessions of phidata."""
