"""Markers in the place of redacted text.

Anyone can write the same characters; they result in a badge and nothing else.
"""

MARKER = "[redacted]"

MARKER_IN_ADDRESS = "%5Bredacted%5D"
