"""Legal holds: data that must be kept, whatever a policy, a request or a person would delete."""
