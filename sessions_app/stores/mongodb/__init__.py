"""What the SDK's `MongoDBSession` writes into a MongoDB database."""
