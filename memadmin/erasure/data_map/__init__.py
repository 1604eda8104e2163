"""The data map: where personal data is, who erases it and how long it is kept."""
