"""What the SDK's `SQLAlchemySession` writes into any other database, by its URL."""
