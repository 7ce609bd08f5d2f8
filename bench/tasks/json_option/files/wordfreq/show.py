def format_table(counts):
    width = max((len(word) for word in counts), default=0)
    return "\n".join(f"{word:{width}}  {number}" for word, number in counts.items())
