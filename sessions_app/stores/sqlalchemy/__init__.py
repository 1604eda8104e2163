"""What the SDK's `SQLAlchemySession` writes into memadmin's own PostgreSQL."""
