"""Parts of ids, for an index that finds them."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Func


class Grams(Func):
    """Three-letter pieces of a text, lower-cased: makes part of an id findable through a GIN index (no extension)."""

    function = "memadmin_grams"
    output_field: ClassVar = ArrayField(models.TextField())
