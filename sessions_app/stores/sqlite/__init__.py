"""Files of the SDK's `SQLiteSession`, `AsyncSQLiteSession` and `AdvancedSQLiteSession`."""
