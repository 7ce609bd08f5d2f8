from wordfreq.__main__ import main
from wordfreq.count import count_words


def test_count_words():
    assert count_words("To be, or not to be", top=2) == {"to": 2, "be": 2}


def test_table(tmp_path, capsys):
    path = tmp_path / "a.txt"
    path.write_text("one two two")
    main([str(path)])
    assert capsys.readouterr().out == "two  2\none  1\n"
