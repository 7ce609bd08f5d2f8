"""The memory within its token budget, for files of any size."""

from goose_like_toolkits.boss.memory.budget import (
    build_sections,
    build_summary_prompt,
    find_unsummarized,
    format_sections,
    shorten_library,
    shorten_log,
    shorten_plan,
)
from hypothesis import example, given
from hypothesis import strategies as st

LIBRARY = "\n\n".join(f'def f{n}(x: int) -> int:\n    """Gives {n}."""\n    return {n}' for n in range(100))
LOG = "".join(f"- {n} · run_code: it gave {n}\n" for n in range(1, 201))


def size(text: str) -> int:
    return len(text.encode())


def test_short_files_are_unchanged():
    contents = {
        "notes": "by hand\n",
        "plan": "- a\n",
        "logs": "- 1 · x\n",
        "code_library": "def f(): ...",
        "none": " \n",
    }
    assert build_sections(contents, limit_tokens=1_000, log_summary="not needed") == [
        ("notes", "by hand"),
        ("plan", "- a"),
        ("log", "- 1 · x"),
        ("code_library", "def f():"),
    ]


def test_finished_steps_are_left_out_first():
    steps = [f"{n}. [{'x' if n < 40 or n == 42 else ' '}] step {n}\n   - more of it" for n in range(1, 50)]
    plan = "# Plan\n\n" + "\n".join(steps[:20]) + "\n## Part two\n" + "\n".join(steps[20:]) + "\n"
    assert shorten_plan(plan, 600) == "\n".join(
        ["[40 finished steps are left out]", "# Plan\n\n## Part two", *steps[39:41], *steps[42:], ""]
    )
    assert len(shorten_plan(plan, 100)) <= 100
    (_, shown), *_ = build_sections({"plan": plan}, limit_tokens=200)
    assert "step 49" in shown


def test_newest_log_entries_stand_below_the_summary():
    shown = shorten_log(LOG, 400).split("\n")
    assert shown[0] == f"[... {200 - len(shown) + 1} earlier lines ...]"
    assert shown[1:] == LOG.splitlines()[-len(shown) + 1 :]
    assert len(shown) > 8
    short = shorten_log(LOG, 400, "all went well\n")
    assert short.startswith("[Before, in short:]\nall went well\n[... 1")
    assert short.endswith("- 200 · run_code: it gave 200")
    assert shorten_log("x" * 1_000, 200).endswith("x" * 139)


def test_library_outline_loses_detail():
    assert '"""Gives 99."""' in shorten_library(LIBRARY, 8_000)
    signatures = shorten_library(LIBRARY, 4_000)
    assert "def f0(x: int) -> int:" in signatures
    assert "Gives" not in signatures
    assert shorten_library(LIBRARY, 500).split("\n") == [f"f{n}" for n in range(100)]
    assert shorten_library(LIBRARY, 90).split("\n") == ["[... 93 older ones ...]", *(f"f{n}" for n in range(93, 100))]
    assert "line 1" in shorten_library("def f(", 200)


def test_other_files_lose_their_middle():
    ((_, shown),) = build_sections({"notes": "a" * 5_000 + "b" * 5_000}, limit_tokens=200)
    assert shown.startswith("a" * 400)
    assert shown.endswith("b" * 100)
    assert "bytes left out here" in shown


NAMES = st.sampled_from(["plan", "logs", "code_library", "notes", "facts"])
TEXTS = st.one_of(
    st.text(max_size=200),
    st.builds(lambda line, times: line * times, st.text(min_size=1, max_size=30), st.integers(0, 400)),
    st.sampled_from([LIBRARY, LOG, "- [x] é\n" * 900, "- " * 5_000, "x = 1\n" + "def é(): ...\n" * 900, "€" * 9_000]),
)


@given(st.dictionaries(NAMES, TEXTS), st.integers(0, 3_000), TEXTS)
@example({"plan": "€" * 9_000, "logs": "€" * 9_000}, 100, "€" * 9_000)
def test_sections_stay_within_the_budget(contents, limit_tokens, log_summary):
    shown = build_sections(contents, limit_tokens=limit_tokens, log_summary=log_summary)
    assert sum(size(text) for _, text in shown) <= limit_tokens * 3 + 120 * len(shown)
    assert build_sections(contents, limit_tokens=limit_tokens, log_summary=log_summary) == shown


def test_sections_keep_their_size_after_200_rounds():
    lengths = []
    for rounds in (20, 200):
        log, through, summary = "", 0, ""
        for number in range(rounds):
            log += f"- {number} · run_code: {'it gave something ' * 10}\n"
            part, through = find_unsummarized({"logs": log}, through, limit_tokens=1_000, log_summary=summary)
            summary = "in short " * 20 if part else summary
        plan = "".join(f"- [{'x' if n < rounds // 5 else ' '}] {'step ' * 10}\n" for n in range(50))
        library = LIBRARY[: len(LIBRARY) * rounds // 200]
        texts = build_sections(
            {"plan": plan, "logs": log, "code_library": library},
            limit_tokens=1_000,
            log_summary=summary,
        )
        lengths.append(sum(size(text) for _, text in texts))
    assert lengths[1] <= lengths[0] * 1.2


@given(st.lists(st.text(alphabet="abé", max_size=60), min_size=1), st.integers(700, 2_000), st.booleans())
def test_log_is_summarized_only_when_it_does_not_fit(entries, limit_tokens, is_full):
    others = {"plan": "- step\n" * 500, "code_library": "x = 1\n" * 300, "notes": "x" * 4_000} if is_full else {}
    # The line that crosses the limit of the kept end is kept whole.
    longest_line = max(size(f"- 300 {entry}\n") for entry in entries)
    log, through, summary, parts = "", 0, "", []
    for number in range(300):
        log += f"- {number} {entries[number % len(entries)]}\n"
        before, texts = through, {**others, "logs": log}
        fits = log.rstrip("\n") == dict(build_sections(texts, limit_tokens=limit_tokens))["log"]
        part, through = find_unsummarized(texts, through, limit_tokens=limit_tokens, log_summary=summary)
        assert part == log[before:through]
        assert not (part and fits)
        assert not part or size(part) + longest_line > limit_tokens // 6, "a part is worth its request"
        parts.append(part)
        summary = "in short " * 100 if through else ""
        if number % 20 == 0 or part:
            shown = dict(build_sections(texts, limit_tokens=limit_tokens, log_summary=summary))["log"]
            assert log[through:].strip("\n") in shown
    assert "".join(parts) == log[:through]


def test_log_of_earlier_runs_and_shortened_log():
    log = LOG * 20
    part, through = find_unsummarized({"logs": log}, 0, limit_tokens=100)
    assert part.startswith("[... ")
    assert part.endswith(log[:through].splitlines()[-1])
    assert size(part) <= 8_060
    assert find_unsummarized({"logs": "- 1\n"}, 5_000, limit_tokens=100) == ("", 0)
    assert find_unsummarized({"logs": "x" * 500}, 0, limit_tokens=100) == ("", 0)  # one line, and not at its end yet


def test_sections_stand_between_tags():
    assert format_sections([("plan", "# Plan\n- a\n"), ("log", " \n"), ("now", "Go.")]) == (
        "<plan>\n# Plan\n- a\n</plan>\n\n<now>\nGo.\n</now>"
    )


def test_summary_prompt():
    asked = build_summary_prompt("it began", "- 7 · run_code: ok\n")
    assert "Your notes so far:\nit began\n" in asked
    assert "- 7 · run_code: ok" in asked
    assert "so far" not in build_summary_prompt("", "- 1")
