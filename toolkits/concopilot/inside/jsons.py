"""JSON of the values that components make."""

import json
import sys
import uuid
from typing import Any


class JsonEncoder(json.JSONEncoder):
    """Takes sets as lists, UUIDs as text, and numpy's numbers and arrays as numbers and lists."""

    def default(self, o: Any) -> Any:
        """
        Raises:
            TypeError: when the value is none of these.
        """
        if isinstance(o, uuid.UUID):
            return str(o)
        if isinstance(o, set | frozenset):
            return list(o)
        numpy = sys.modules.get("numpy")  # its values are there only if it was imported
        if numpy is not None and isinstance(o, numpy.generic | numpy.ndarray):
            return o.tolist()
        return super().default(o)
