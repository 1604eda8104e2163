"""From what other systems remember to what might be proposed. Pure: values of files and rows in, entries out."""
