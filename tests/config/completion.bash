#!/usr/bin/env bash
# Tests the completions of tools/completion/kiln.bash. usage: completion.bash SCRIPT KILN FOLDER (unpacked accepted.txt)
set -u
# shellcheck disable=SC1090
source "$1"
kiln=$2
passed=0 failed=0

# offers EXPECTED WORD...: completes the last word.
offers() {
    local expected=$1
    shift
    COMP_WORDS=("$kiln" "$@") COMP_CWORD=$# COMPREPLY=()
    _kiln
    if [ "${COMPREPLY[*]}" = "$expected" ]; then
        passed=$((passed + 1))
    else
        printf 'kiln %s: expected "%s", found "%s"\n' "$*" "$expected" "${COMPREPLY[*]}"
        failed=$((failed + 1))
    fi
}

cd "$3" || exit 1
offers 'init generate choose export list show explain diff families schema help --help --version' ''
offers 'show schema' s
offers 'init generate choose export list show explain diff families schema help' help ''
offers '--targets --name --model --format --cxx --quiet --help' init -
offers '--output --targets --images --ptx --shards --jobs --lock --stamp --check --times --force --quiet --help' generate -
offers '--shards --stamp' generate one.yaml --s
offers '--output --targets --ptx --diff --candidates --force --quiet --help' choose -
offers 'shaped.yaml' choose --candidates 8 shap
offers 'shaped.yaml' generate one.yaml --lock shap
offers 'sm_90 sm_90a' show one.yaml plain -t sm_9
offers 'sm_110 sm_110a sm_110f' list --targets = sm_11
offers 'int4_scale int4_pack int4_quantize int4_unpack' families int4
offers 'attention' explain one.yaml at
offers 'one.yaml' generate on
offers 'one.yaml' generate --quiet on
offers 'nf4_scale' families --long nf4_s
offers '' frobnicate --x
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
