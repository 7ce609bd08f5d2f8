"""JSON of the values that components make."""

import json
import sys
import uuid
from typing import Any


class JsonEncoder(json.JSONEncoder):
    """Takes sets as lists, UUIDs as text, and numpy's numbers and arrays as numbers and lists."""

    def default(self, obj: Any) -> Any:
        """
        Raises:
            TypeError: when the value is none of these.
        """
        if isinstance(obj, uuid.UUID):
            return str(obj)
        if isinstance(obj, set | frozenset):
            return list(obj)
        numpy = sys.modules.get("numpy")  # its values are there only if it was imported
        if numpy is not None and isinstance(obj, numpy.generic | numpy.ndarray):
            return obj.tolist()
        return super().default(obj)
