"""Worked examples of questions about a dashboard, for the smallest models."""

from goose_like.toolkit import Example, ExampleCall


def _read(widget_uuid: str, output: str) -> ExampleCall:
    return ExampleCall("get_widget_data", {"widget_uuid": widget_uuid}, output)


EXAMPLES = (
    Example(
        "Which day had the most visitors?\n\n[Widgets that the person picked]\n- 41 Visitors: Visitors per day\n\n"
        "[Widgets on the dashboard]\n- 57 Ticket Sales: Tickets and prices",
        (_read("41", '[{"day": "Mon", "count": 80}, {"day": "Tue", "count": 120}]'),),
        "Tuesday had the most visitors: 120 (Visitors).",
    ),
    Example(
        "How much was a ticket?\n\n"
        "[Widgets on the dashboard]\n- 41 Visitors: Visitors per day\n- 57 Ticket Sales: Tickets and prices",
        (_read("57", '[{"ticket": "adult", "price": 9.5, "sold": 300}]'),),
        "A ticket for an adult was 9.5 (Ticket Sales).",
    ),
    Example(
        "Who sold the tickets?\n\n[Widgets that the person picked]\n- 57 Ticket Sales: Tickets and prices\n\n"
        "[Widgets on the dashboard]\n- 41 Visitors: Visitors per day",
        (_read("57", '[{"ticket": "adult", "price": 9.5, "sold": 300}]'),),
        "No widget says who sold the tickets.",
    ),
)
