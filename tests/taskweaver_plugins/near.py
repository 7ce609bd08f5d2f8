"""No plugin: a module beside them."""

WORD = "one"


class Near:
    pass
