"""Tables of the SDK's `SQLAlchemySession` in memadmin's own PostgreSQL."""
