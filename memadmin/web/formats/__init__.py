"""Formats of times in Django admin, for FORMAT_MODULE_PATH: hours from 0 to 23, in UTC."""
