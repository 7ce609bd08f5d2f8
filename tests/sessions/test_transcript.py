"""Transcripts of sessions as Markdown and as a web page."""

import json
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from goose_like.core.events import (
    FileChanged,
    Logged,
    MessageCompleted,
    TextShown,
    ToolFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED
from goose_like.core.message import Message, ToolCall, ToolResult
from goose_like.sessions.export_html import export_html
from goose_like.sessions.export_markdown import _disarm, export_markdown
from goose_like.sessions.index import find_session
from goose_like.sessions.transcript import Transcript, list_changed_files
from tests.sessions.session_files import DIFF, make_header, write_events, write_full_session, write_session


class Tags(HTMLParser):
    """The tags with their attributes, the text, and the open tags of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def test_the_page_escapes_everything_and_loads_nothing():
    write_full_session()
    text = export_html(Transcript.read(find_session("one")))
    read = Tags(text)
    assert read.open == []
    kinds = {tag for tag, _ in read.tags}
    assert {"details", "ins", "del", "img", "strong", "h2"} <= kinds
    assert not kinds & {"script", "link", "iframe", "object", "base"}
    assert not [name for _, attributes in read.tags for name in attributes if name.startswith("on")]
    assert [attributes["src"] for tag, attributes in read.tags if tag == "img"] == ["data:image/png;base64,iVBORw=="]
    assert "\x1b" not in text
    # Everywhere that the text was put: the person, thinking, the answer, two of a call, the output, a name, a question,
    # the plan, a table's name and a cell, what may be asked next, the reminder, the end.
    assert read.words.count("<script>alert(1)</script>") == 14
    assert "\\x1b[31mred" in read.words
    assert INTERRUPTED in read.words  # the call that has no result


def test_links_of_the_model_are_no_scripts_and_its_images_are_not_loaded():
    said = '[x](javascript:alert(1)) ![y](http://there/y.png) <img src="http://there/z.png"> [z](http://there)'
    write_events("one", TurnStarted(message=Message.user("x")), MessageCompleted(message=Message.assistant(said)))
    tags = Tags(export_html(Transcript.read(find_session("one")))).tags
    assert [attributes["href"] for tag, attributes in tags if tag == "a"] == ["http://there/y.png", "http://there"]
    assert "img" not in {tag for tag, _ in tags}


def test_markdown():
    write_full_session()
    text = export_markdown(Transcript.read(find_session("one")))
    assert text.startswith("# one\n\n- folder: /w\n")
    assert "## Turn 1\n\n> &lt;script>" in text
    assert "\x1b" not in text
    assert text.count(f"```diff\n{DIFF}\n```") == 2  # of a question, and of a change
    assert "--- a note" in text
    assert "````\n--- a/x.py" in text  # the fence is longer than any in the output
    assert "```\ncut\n```\n\n*cut off*" in text  # what was left open is closed
    assert "- ☑ \\<script\\>" in text
    assert "| day | n |\n| --- | --- |\n" in text
    assert "*to ask next: Why? · " in text
    assert "## Meanwhile\n\n> wait" in text
    assert "## Turn 2" not in text


def test_shown_text_of_a_killed_process():
    calls = [ToolCall(id=id, name="shell", arguments=json.dumps({"command": f"make {id}"})) for id in ("a", "b")]
    write_events(
        "one",
        TurnStarted(message=Message.user("go")),
        TextShown(text="replaced"),
        MessageCompleted(message=Message.assistant("I look.", calls)),
        TextShown(text="compiling\n", call_id="a"),
        ToolFinished(result=ToolResult(call_id="b", output="built")),
        make_header("one"),
        TurnStarted(message=Message.user("on")),
        TextShown(text="Half an "),
        TextShown(text="answer"),
    )
    text = export_markdown(Transcript.read(find_session("one")))
    assert text.endswith("> on\n\nHalf an answer\n\n*cut off*\n")
    assert f"{INTERRUPTED}. It had shown:\ncompiling\n" in text
    assert "replaced" not in text
    assert "Half an answer" in export_html(Transcript.read(find_session("one")))


def test_files_that_tools_wrote():
    changes = [
        FileChanged(call_id="a", path=path, diff=DIFF) for path in ("/w/x.py", "/w2/y.py", "/w/a/z.py", "/w/x.py")
    ]
    write_events("one", TurnStarted(message=Message.user("x")), *changes)
    transcript = Transcript.read(find_session("one"))
    assert list_changed_files(transcript.events) == ["x.py", "/w2/y.py", "a/z.py"]
    titles = [entry.title for entry in transcript.iterate_entries() if entry.kind == "diff"]
    assert titles == ["x.py", "/w2/y.py", "a/z.py", "x.py"]


def test_a_logged_diff_of_an_older_session_is_a_note():
    write_events("one", TurnStarted(message=Message.user("x")), Logged(text=DIFF))
    transcript = Transcript.read(find_session("one"))
    assert [(entry.kind, entry.text) for entry in transcript.iterate_entries()][-1] == ("note", DIFF)
    assert list_changed_files(transcript.events) == []


def test_what_is_damaged_is_told_and_the_rest_shown():
    session = write_session("one", "hello")
    with session.file.open("ab") as file:
        file.write(b"{\n")
    transcript = Transcript.read(find_session("one"))
    assert "line 4: left out" in transcript.damage[0]
    assert "> hello" in export_markdown(transcript)


ARMED = st.sampled_from(
    [
        *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "![y](http://there/y.png)", "![[http://there]]"),
        *("[x](javascript:alert(1))", "[x](&#106;avascript:alert(1))", "[r]: javascript\\:alert(1)", "[r]", "[a](<"),
        *(
            "```",
            "~~~",
            "````html",
            "   ```",
            "    ```",
            "`",
            "``",
            "\\`",
            "\\",
            "|",
            "| a | b |\n|---|---|",
            "- ",
            "> ",
        ),
        *("\n", "\n\n", " ", "text", "   ", "1. ", "<div>", "-->", "<!--", "\r", "\t", "#", "[x]: /y '", "\u202e"),
    ]
)


@given(st.lists(ARMED, max_size=14))
def test_no_answer_puts_html_images_or_script_links_into_markdown(parts):
    text = _disarm("".join(parts))
    for options in ("commonmark", "gfm-like"):
        read = Tags(MarkdownIt(options, {"html": True, "linkify": False}).render(text))
        kinds = {tag for tag, _ in read.tags}
        assert not kinds & {"script", "img", "div"}, text
        assert not [True for _, all in read.tags if "script:" in (all.get("href") or "").lower()], text
    assert not {"\u202e", "\r"} & set(text)


def test_code_in_markdown_stays():
    for text in (
        "```html\n<b>&amp;![x](y)</b>\n```",
        "use `<b>` or ``a`<c>``",
        "- a\n  ```\n  <x>\n  ```\n- `a <b>`",
    ):
        assert _disarm(text) == text
    assert _disarm("a < b & c, List<int>") == "a &lt; b & c, List&lt;int>"
    assert _disarm("```py\ncut") == "```py\ncut\n```"
