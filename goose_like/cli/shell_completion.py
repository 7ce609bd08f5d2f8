"""What may come next on a command line, and the scripts by which bash, zsh and fish ask for it."""

from typer import Typer
from typer._completion_classes import BashComplete  # of typer's completion only the search is used, not its scripts
from typer.main import get_command

PROGRAM = "goose-like"

# Each asks `goose-like complete -- WORD...`, the last word being the one at the cursor, and reads lines of a word, a
# tab, and what it means. Where nothing comes, files are offered.

_BASH = r"""
_goose_like() {
    local line=${COMP_LINE:0:COMP_POINT} word help
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local last=${words[${#words[@]}-1]}
    local before=${last%"$2"}  # bash also breaks words at : and =, and wants what comes after
    COMPREPLY=()
    while IFS=$'\t' read -r word help; do
        word=${word#"$before"}
        COMPREPLY+=("$(printf %q "$word")")
        [[ $word == *: ]] && compopt -o nospace 2>/dev/null
    done < <("${1/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _goose_like goose-like
"""

_ZSH = r"""
#compdef goose-like
_goose_like() {
    local word help
    local -a whole open whole_help open_help
    while IFS=$'\t' read -r word help; do
        if [[ $word == *: ]]; then
            open+=("$word") open_help+=("$word${help:+  -- $help}")
        else
            whole+=("$word") whole_help+=("$word${help:+  -- $help}")
        fi
    done < <("${(Q)words[1]/#\~/$HOME}" complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    (( $#open )) && compadd -S '' -l -d open_help -a open
    (( $#whole )) && compadd -l -d whole_help -a whole
    (( $#open + $#whole )) || _files
}
if [[ $funcstack[1] == _goose-like ]]; then _goose_like "$@"; else compdef _goose_like goose-like; fi
"""

_FISH = r"""
function __goose_like_complete
    set -l words (commandline -opc)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l found ($program complete -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c goose-like -f -a '(__goose_like_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def print_candidates(app: Typer, words: list[str]) -> None:
    """Prints what the last of the words may become: each as a whole word, a tab, and what it means."""
    *before, start = words or [""]
    option, equals, _ = start.partition("=")
    prefix = option + equals if start.startswith("--") and equals else ""
    search = BashComplete(get_command(app), {}, PROGRAM, "")
    for item in search.get_completions(before, start):
        word, meaning = f"{prefix}{item.value}", " ".join((item.help or "").split())
        if item.type == "plain" and word.isprintable():
            print(word, "".join(filter(str.isprintable, meaning)), sep="\t")
