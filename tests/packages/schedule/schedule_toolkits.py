"""The ScheduleToolkit of the architecture page, and the three that it depends on, as a package by somebody else."""

from goose_like.toolkit import Notifier, Requirements, Toolkit, tool


class CalendarToolkit(Toolkit):
    """Holds the appointments."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs) -> None:
        super().__init__(notifier, requires, **kwargs)
        self.appointments = ["dentist at ten"]


class ContactsToolkit(Toolkit):
    """Without tools and prompt."""


class AssistantToolkit(Toolkit):
    """With the older spelling of `prompt`."""

    def system(self) -> str:
        return "You assist."


class ScheduleToolkit(Toolkit):
    """Depends on the other three."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs) -> None:
        super().__init__(notifier, requires, **kwargs)  # handles the interface, exchangeview

        # for a class that has requirements, you can get them like this
        self.calendar = requires.get("calendar")
        self.assistant = requires.get("assistant")
        self.contacts = requires.get("contacts")

        self.appointments_state = []

    def prompt(self) -> str:
        return "Try out the example tool."

    @tool
    def example(self):
        self.interface.log(f"An example tool was called, current state is {self.appointments_state}")

    @tool
    def example_dependency(self):
        return self.dependencies["calendar"].appointments

    @tool
    def example_history(self):
        last_message = self.exchange_view.processor.messages[-1]
        return last_message.text
