from till.prices import total


def receipt(articles):
    lines = [f"{kind} {cents}" for kind, cents in articles]
    lines.append(f"total {total(articles)}")
    return "\n".join(lines)
