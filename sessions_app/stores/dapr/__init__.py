"""State of the SDK's `DaprSession`, in a state store behind a Dapr sidecar."""
