"""What the SDK's `RedisSession` writes into a Redis server."""
