from concopilot.framework.asset import Asset
from concopilot.framework.plugin import AbstractPlugin


class Canvas:
    pass


class Picture(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        return getattr(self, command_name)(param)

    def draw(self, param):
        asset = Asset(
            asset_type="picture",
            content_type="<class 'list'>",
            content=[[param.shade] * param.width for _ in range(param.height)],
        )
        self.context.assets[str(asset.asset_id)] = asset
        return {"asset_id": str(asset.asset_id)}

    def invert(self, param):
        return {"rows": [[255 - shade for shade in row] for row in param.rows]}

    def mean(self, param):
        digits = (param.options or {}).get("digits") or 1
        means = {}
        for picture in param.pictures:
            shades = [shade for row in picture.rows for shade in row]
            means[picture.label] = round(sum(shades) / len(shades), digits)
        return {"means": means}

    def whole(self, param):
        return len(param)

    def object(self, param):
        return Canvas()

    def look(self, param):
        return type(param.what).__name__

    def raw(self, param):
        return b"\x89PNG\r\n\x1a\n" + bytes(100)


def constructor(config):
    return Picture(config)
