"""The embedded PostgreSQL: a Django database backend that starts its server on the first connection."""
