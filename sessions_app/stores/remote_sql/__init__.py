"""Tables of the SDK's `SQLAlchemySession` in any other database, by its URL."""
