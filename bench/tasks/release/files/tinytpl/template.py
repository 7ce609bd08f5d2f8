import re

PLACEHOLDER = re.compile(r"\{([\w|]+)\}")


def render(text, **values):
    def replace(match):
        name = match[1]
        if name not in values:
            raise KeyError(name)
        return str(values[name])

    return PLACEHOLDER.sub(replace, text)
