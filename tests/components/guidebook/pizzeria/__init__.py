"""Gives back what it was given, so that a test sees what a command sees."""

import json

from concopilot.framework.asset import Asset
from concopilot.framework.plugin import AbstractPlugin


class Pizzeria(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        if command_name == "order":
            return {"taken": json.dumps({**param, "config": self.config.config}, sort_keys=True)}
        if command_name == "deliver":
            return param.to
        if command_name == "keep":
            content = {"dish": "Funghi", "count": 3, "address": {"number": 4, "street": "Lane"}}
            self.context.assets["kept"] = Asset(asset_type="order", asset_id="kept", content=content)
            return "kept"
        return json.dumps(param, sort_keys=True)


def constructor(config):
    return Pizzeria(config)
