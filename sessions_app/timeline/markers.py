"""What stands in the place of a text that was redacted.

Anybody can write the same characters; nothing follows from them but a badge.
"""

MARKER = "[redacted]"

MARKER_IN_ADDRESS = "%5Bredacted%5D"
