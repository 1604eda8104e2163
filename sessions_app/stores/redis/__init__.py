"""Keys of the SDK's `RedisSession` on a Redis server."""
