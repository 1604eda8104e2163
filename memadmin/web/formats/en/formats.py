"""As on the console's own pages; Django's own formats for English have hours from 1 to 12."""

DATE_FORMAT = SHORT_DATE_FORMAT = "j F Y"
TIME_FORMAT = r"H:i \U\T\C"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = r"j F Y, H:i \U\T\C"
