"""Import from other systems and export. `entries`, `formats` and `rows` are pure: values in, entries out."""
