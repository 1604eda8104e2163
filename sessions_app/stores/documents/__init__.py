"""Common parts of agno and phidata: rows with whole JSON documents, in which the same text occurs many times."""
