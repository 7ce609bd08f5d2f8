from notes.utils import parse_day, slug


class Note:
    def __init__(self, title, day):
        self.title = title
        self.day = parse_day(day)

    def file_name(self):
        return f"{self.day}-{slug(self.title)}.md"
