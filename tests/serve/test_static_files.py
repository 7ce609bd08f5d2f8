"""Tests of the page's files: their types and their content security policies."""

import pytest

from goose_like.serve.static_files import load_static_files

KINDS = {"": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}


@pytest.mark.parametrize("path", sorted(load_static_files()))
def test_each_file_has_its_type_and_a_policy(path):
    asset = load_static_files()[path]
    policy = asset.headers["content-security-policy"]
    assert policy.count("default-src 'none'") == 1
    # HTML of a model may bring styles, but no scripts; the page runs only its own files.
    assert "script-src 'unsafe" not in policy
    assert ("unsafe" in policy) == ("sandbox allow-scripts" in policy) == (path == "frame.html")
    assert asset.headers["content-type"] == f"{KINDS[path.rpartition('.')[2]]}; charset=utf-8"


def test_nothing_is_loaded_from_elsewhere():
    """The page contains URLs only as XML namespaces."""
    found = {
        path: asset.body.decode().replace("http://www.w3.org/2000/svg", "")
        for path, asset in load_static_files().items()
        if path != "temml.min.js"  # which creates elements too, and has addresses of namespaces
    }
    assert [path for path, text in found.items() if "://" in text and path not in ("markdown.js", "answer.js")] == []
    assert [path for path, text in found.items() if ".innerHTML" in text or "insertAdjacentHTML" in text] == []
