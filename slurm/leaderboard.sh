#!/usr/bin/env bash
# Ranks the results and lists the missing ones:  sbatch slurm/leaderboard.sh [DIR]
# DIR holds the submissions; the page is leaderboard.html beside the results.
#SBATCH --job-name=grade-board
#SBATCH --output=/dev/null
#SBATCH --ntasks=1
#SBATCH --time=00:10:00
set -uo pipefail
stop() { # before there is a log: where Slurm itself would write
  echo "leaderboard.sh: $1" >&2
  local file=slurm-${SLURM_JOB_ID:-}.out
  [[ -z ${SLURM_JOB_ID:-} ]] || echo "leaderboard.sh: $1" >>"${SLURM_SUBMIT_DIR:-.}/$file" ||
    echo "leaderboard.sh: $1" >>"${HOME:-/tmp}/$file"
  exit 3
}
if [[ ${1:-} == --settings ]]; then # see settings.sh; up to --, so that no file name can be one
  while shift && [[ ${1:-} == GRADE_*=* ]]; do export "${1?}"; done
  [[ ${1:-} == -- ]] || stop "--settings: expected GRADE_NAME=value, then --"
  shift
fi
home=${GRADE_HOME:-}
if [[ -z $home && -n ${SLURM_JOB_ID:-} ]]; then
  home=$(scontrol show job "$SLURM_JOB_ID" | LC_ALL=C sed -n '/^ *Command=/{s|^ *Command=\(.*\)/slurm/leaderboard\.sh.*|\1|p;q}')
fi
[[ -n $home ]] || home=$(cd "$(dirname "$0")/.." && pwd)
cd "${SLURM_SUBMIT_DIR:-$PWD}" || stop "$SLURM_SUBMIT_DIR is no folder on $(hostname)"
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh" ||
  stop "${trouble:-no checkout in $home: submit the slurm/leaderboard.sh of one, or set GRADE_HOME}"
if [[ -n ${SLURM_JOB_ID:-} ]]; then
  exec >>"$GRADE_OUT/logs/$SLURM_JOB_ID.log" 2>&1 || stop "$GRADE_OUT/logs cannot be written to"
fi

status=0
if [[ -n ${1:-} ]]; then
  manifest=$GRADE_OUT/missing.json
  left=$("$GRADE_BIN" class --plan "$manifest" "${options[@]}" -- "$1") || status=$?
  echo "$left submissions in $1 have no result; $manifest names them."
fi
# A lab file has rules of time.
"$GRADE_BIN" leaderboard --out "$GRADE_OUT" ${GRADE_ROSTER:+--roster "$GRADE_ROSTER"} \
  ${GRADE_LAB:+--lab "$GRADE_LAB"} \
  --html "$GRADE_OUT/leaderboard.html" --csv "$GRADE_OUT/leaderboard.csv" || status=$?
exit $status
