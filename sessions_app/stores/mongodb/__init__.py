"""Collections of the SDK's `MongoDBSession` in a MongoDB database."""
