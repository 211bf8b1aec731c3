#!/usr/bin/env bash
# Grades a class, from the login node:  slurm/class.sh DIR [TYPE]
# TYPE is a GPU type such as a100. One job compiles for it (in GRADE_CPU_PARTITION, if set), an array
# grades, and one ranks; where check.sh finds that they cannot run, nothing is submitted. The same
# command again grades what is missing. Settings: GRADE_CHUNK submissions per task, GRADE_PARALLEL
# tasks at a time, GRADE_ROSTER, and those of settings.sh.
# Put options that sbatch needs at your site (account, partition) into SBATCH_* variables.
set -euo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh" || { echo "$0: ${trouble:-no settings.sh beside it; run it in its checkout}" >&2; exit 3; }
[[ $# -ge 1 && $# -le 2 && -d $1 ]] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
class=$(cd -- "$1" && pwd) type=${2:-}
if [[ -n $type ]]; then # results of different GPUs never overwrite one another
  GRADE_OUT=$GRADE_OUT/$type
  mkdir -p "$GRADE_OUT/logs"
  options+=(--out "$GRADE_OUT")
fi
export SGEMM_GRADER_CACHE=$GRADE_CACHE
ask "$type" %A_%a
GRADE_ARCH=${GRADE_ARCH:-$arch}
[[ $GRADE_ARCH != - ]] || { echo "$0: no GPU is known as $type: set GRADE_ARCH, such as sm_80" >&2; exit 2; }
hand_over

manifest=$GRADE_OUT/logs/class-$(date +%Y%m%dT%H%M%S)-$$.json
left=$("$GRADE_BIN" class --plan "$manifest" "${options[@]}" -- "$class")
after=() cpu=(${GRADE_CPU_PARTITION:+--partition="$GRADE_CPU_PARTITION"})
if ((left)); then
  chunk=${GRADE_CHUNK:-$(((left + 199) / 200))}
  most=$(scontrol show config | awk '$1 == "MaxArraySize" {print $3}')
  tasks=$(((left + chunk - 1) / chunk))
  if ((tasks > ${most:-1001} - 1)); then tasks=$((${most:-1001} - 1)); fi
  if ((tasks < 1)); then tasks=1; fi # arrays are off; the check says so
  if ! checked=$(GRADE_OUT=$GRADE_OUT "$home/slurm/check.sh" "$type" "$tasks" 2>&1); then
    printf '%s\n' "$checked" "$0: nothing was submitted" >&2
    exit 1
  fi
  compile=(class --compile "$GRADE_ARCH" --manifest "$manifest" "${options[@]}" -- "$class")
  shared=("SGEMM_GRADER_CACHE=$GRADE_CACHE" "SGEMM_GRADER_PREPARED=${SGEMM_GRADER_PREPARED:-}")
  # Not --wrap: its shell may not understand bash's quotes.
  ahead=$({ echo '#!/usr/bin/env bash'; printf '%q ' env "${shared[@]}" "$GRADE_BIN" "${compile[@]}"; } |
    sbatch --parsable --job-name=grade-compile --cpus-per-task=2 "${cpu[@]}" \
      --output="${GRADE_OUT//%/%%}/logs/compile-%j.log")
  array=$(sbatch --parsable "${asked[@]}" --dependency="afterany:$ahead" \
    --array="0-$((tasks - 1))%${GRADE_PARALLEL:-50}" \
    "$home/slurm/run.sh" "${handed[@]}" --class "$class" "$manifest" "$tasks")
  echo "Job $array grades $left submissions in $tasks tasks."
  after=(--dependency="afterany:$array") # a failed task must not block the board
else
  echo "Nothing is left to grade."
fi
board=$(sbatch --parsable "${after[@]}" "${cpu[@]}" \
  "$home/slurm/leaderboard.sh" "${handed[@]}" "$class")
echo "Job $board makes the leaderboard, $GRADE_OUT/leaderboard.html."
