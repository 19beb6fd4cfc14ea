# Completion of kiln's command line for bash. kiln itself lists the completions.
_kiln() {
    local kiln=${COMP_WORDS[0]} command=${COMP_WORDS[1]}
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words
    [ "$word" != = ] || word=
    [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}
    local targets=
    case $before in
        -t | --target | --targets) targets=1 ;;
        -o | --output) mapfile -t COMPREPLY < <(compgen -d -- "$word") && return ;;
    esac
    case $COMP_CWORD/$command/$targets/$word in
        1/*) words="$(_kiln_commands) --help --version" ;;
        2/help/*) words=$(_kiln_commands) ;;
        */1/*) words=$("$kiln" schema | grep -o '"sm_[0-9a-f]*"' | tr -d '"') ;;
        *//-*) words=$("$kiln" help "$command" 2>/dev/null | grep -o -e '--[a-z]*') ;;
        */families/* | 3/explain/*) words=$("$kiln" families | sed -n 's/^  \([a-z][a-z0-9_]*\).*/\1/p') ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$word") && return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

_kiln_commands() {
    "$kiln" help | sed -n 's/^  kiln \([a-z]*\) .*/\1/p'
}

complete -o filenames -F _kiln kiln
