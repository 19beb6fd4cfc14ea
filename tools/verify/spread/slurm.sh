#!/bin/bash
# Runs a verification as an array of Slurm jobs, a part each, and merges them once all have ended. A part that a node loses
# is begun again, and goes on where it was; so does one that a time limit ended, when the same command is called again.
# usage: slurm.sh PARTS OUT.json VERIFY [OPTION]...     sbatch takes what else it needs from SBATCH_PARTITION, SBATCH_GPUS, ...
set -euo pipefail
[ $# -ge 3 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
parts=$1 out=$2 verify=$3
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then # within a job
    exec "${@:3}" --part "$SLURM_ARRAY_TASK_ID/$parts" --json "$out.$SLURM_ARRAY_TASK_ID" --resume
fi
mapfile -t files < <(seq -f "$out.%.0f" "$parts")
array=$(sbatch --parsable --requeue --output "$out.%a.txt" --array "1-$parts" "$0" "$@")
merge=$(printf '%q ' "$verify" merge "${files[@]}" -o "$out")
remove=$(printf '%q ' rm "${files[@]}")
sbatch --dependency "afterany:$array" --output "$out.txt" --wrap "$merge; status=\$?; [ \$status = 2 ] || $remove; exit \$status"
