#!/usr/bin/env bash
# Measures the reference ladder on each GPU type:  slurm/ladder.sh a100 2080ti …
# One job per type; results, page and document go to GRADE_OUT/TYPE/ladder. The same command again
# resumes where it stopped.
set -euo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh" || { echo "$0: ${trouble:-no settings.sh beside it; run it in its checkout}" >&2; exit 3; }
(($#)) || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
all=$GRADE_OUT
for type in "$@"; do
  GRADE_OUT=$all/$type
  mkdir -p "$GRADE_OUT/logs"
  hand_over
  ask "$type"
  job=$(sbatch --parsable "${asked[@]}" --job-name="ladder-$type" --time=01:00:00 \
    "$home/slurm/run.sh" "${handed[@]}" --ladder)
  echo "Job $job measures the ladder on $type; its page will be in $GRADE_OUT/ladder/, its log is $GRADE_OUT/logs/$job.log."
done
