#!/bin/bash
# Runs a verification as an array of Slurm jobs, a part each, and merges them once all have ended. If a node fails, Slurm starts
# the part again, and it continues where it was. After a time limit, run the same command again to continue.
# usage: slurm.sh PARTS OUT.json VERIFY [OPTION]...     sbatch reads SBATCH_PARTITION, SBATCH_GPUS, ...
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
