"""What the SDK's `DaprSession` keeps in a state store behind a Dapr sidecar."""
