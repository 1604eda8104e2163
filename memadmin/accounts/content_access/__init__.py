"""Access to conversation content: stated purpose and reading limit (governance S-4)."""
