from ledger.money import format_amount


def format_report(entries):
    lines = []
    for entry in entries:
        text = entry.text
        lines.append(f"{entry.day} {text:<20} {format_amount(entry.cents):>10}")
    balance = sum(entry.cents for entry in entries)
    lines.append(f"balance {format_amount(balance)}")
    return "\n".join(lines)
