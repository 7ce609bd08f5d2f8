r"""Completion scripts for bash, zsh and fish.

A script asks the program, which prints a word, a tab and help per line. bash needs no help: its words come faster.
Typer's own scripts lack `--option=value` in bash, no space after `PROVIDER:`, and files where no word fits.
"""

_BASH = r"""
_goose_like() {
    local line=${COMP_LINE:0:COMP_POINT} word
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local last=${words[${#words[@]}-1]}
    local before=${last%"$2"}  # bash splits words at : and =, and needs only the last part
    COMPREPLY=()
    while IFS= read -r word; do
        [[ -n $word ]] || continue
        word=${word#"$before"}
        COMPREPLY+=("$(printf %q "$word")")
        [[ $word == *: ]] && compopt -o nospace 2>/dev/null
    done < <(_GOOSE_LIKE_COMPLETE=complete_bash COMP_WORDS="$line" COMP_CWORD=$((${#words[@]} - 1)) \
        "${1/#\~/$HOME}" 2>/dev/null)
}
complete -o default -F _goose_like goose-like
"""

_ZSH = r"""
#compdef goose-like
_goose_like() {
    local word help
    local -a whole open whole_help open_help
    local program="${(Q)words[1]/#\~/$HOME}" line="${(j: :)words[1,CURRENT-1]} ${PREFIX}"
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    while IFS=$'\t' read -r word help; do
        if [[ $word == *: ]]; then
            open+=("$word") open_help+=("$word${help:+  -- $help}")
        elif [[ -n $word ]]; then
            whole+=("$word") whole_help+=("$word${help:+  -- $help}")
        fi
    done < <(COLUMNS=9999 _GOOSE_LIKE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS="$line" "$program" 2>/dev/null)
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
    set -l prefix (string match -r -- '^--[^=]+=' (commandline -ct))
    set -l found (env COLUMNS=9999 _GOOSE_LIKE_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \
        _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) $program 2>/dev/null | string match -v '')
    if test (count $found) -gt 0
        printf '%s\n' $prefix$found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c goose-like -f -a '(__goose_like_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
