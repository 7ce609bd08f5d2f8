"""Written as the documentation of goose 0.9 says; it knows nothing of goose_like."""

import os

from goose.toolkit.base import Toolkit, tool
from rich.markdown import Markdown


class Almanac(Toolkit):
    """Knows days, moons and tides."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.asked = []

    @tool
    def moon(self, day: int):
        """Show the moon of a day

        Args:
            day (int): The day of the month, from 1 on
        """
        self.asked.append(day)
        self.notifier.status("looking up")
        self.notifier.log(f"[bold red]moon of day {day}[/]")
        self.notifier.log(Markdown("it is *full*"))

    @tool
    def tide(self, place: str, hours: float | None = None) -> dict:
        """Tell the tide.

        Parameters
        ----------
        place : str
            A harbour
        hours : float, optional
            Hours from now
        """
        return {"place": place, "metres": 1.5 if hours is None else hours}

    @tool
    def sunset(self, city: str) -> str:
        """Tell when the sun sets.

        :param city: Where somebody stands
        :type city: str
        """
        return f"in {city} at six"

    def system(self) -> str:
        return f"""**Look days up in the almanac**
        here: {bool(os.getcwd())}
        """
