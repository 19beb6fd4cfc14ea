#!/bin/bash
# Runs a verification in parts, AT_ONCE at a time, by GNU parallel, and merges them. A killed part is started again
# and continues where it was.
# usage: parallel.sh PARTS AT_ONCE OUT.json VERIFY [OPTION]...
set -euo pipefail
[ $# -ge 4 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
[[ $(parallel --version 2>&1) == *GNU* ]] || { echo "parallel.sh: there is no GNU parallel" >&2; exit 2; }
parts=$1 at_once=$2 out=$3
shift 3
export KILN_EMU_THREADS=${KILN_EMU_THREADS:-1} # parts run in parallel instead

# A wrong kernel fails its part and the merged run; merge reports missing parts.
seq "$parts" | parallel --quote --jobs "$at_once" --retries 3 "$@" --part "{}/$parts" --json "$out.{}" --resume > /dev/null || true

mapfile -t files < <(seq -f "$out.%.0f" "$parts")
status=0
"$1" merge "${files[@]}" -o "$out" || status=$?
[ "$status" = 2 ] || rm "${files[@]}" # 2: some parts are missing, or belong to another run
exit "$status"
