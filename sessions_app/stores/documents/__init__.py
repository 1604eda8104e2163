"""What agno and phidata have in common: rows with whole JSON documents, in which the same text stands many times."""
