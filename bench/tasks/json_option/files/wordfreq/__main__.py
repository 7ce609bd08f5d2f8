import argparse
from pathlib import Path

from wordfreq.count import count_words
from wordfreq.show import format_table


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="wordfreq", description="Count the words of a text file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--top", type=int, metavar="N", help="show only the N most frequent words")
    options = parser.parse_args(arguments)
    counts = count_words(options.file.read_text(), options.top)
    print(format_table(counts))


if __name__ == "__main__":
    main()
