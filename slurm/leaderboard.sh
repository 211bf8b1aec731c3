#!/usr/bin/env bash
# Ranks the results and lists the missing ones:  sbatch slurm/leaderboard.sh [DIR]
# DIR holds the submissions; the page is leaderboard.html beside the results.
#SBATCH --job-name=grade-board
#SBATCH --output=/dev/null
#SBATCH --ntasks=1
#SBATCH --time=00:10:00
set -uo pipefail
if [[ ${1:-} == --settings ]]; then # see settings.sh; up to --, so that no file name can be one
  while shift && [[ ${1:-} == GRADE_*=* ]]; do export "${1?}"; done
  [[ ${1:-} == -- ]] || { echo "--settings: expected GRADE_NAME=value, then --" >&2; exit 2; }
  shift
fi
home=${GRADE_HOME:-}
if [[ -z $home && -n ${SLURM_JOB_ID:-} ]]; then
  home=$(scontrol show job "$SLURM_JOB_ID" | LC_ALL=C sed -n '/^ *Command=/{s|^ *Command=\(.*\)/slurm/leaderboard\.sh.*|\1|p;q}')
fi
[[ -n $home ]] || home=$(cd "$(dirname "$0")/.." && pwd)
cd "${SLURM_SUBMIT_DIR:-$PWD}" || exit 3
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh"
[[ -n ${SLURM_JOB_ID:-} ]] && exec >>"$GRADE_OUT/logs/$SLURM_JOB_ID.log" 2>&1

status=0
if [[ -n ${1:-} ]]; then
  manifest=$GRADE_OUT/missing.json
  left=$("$GRADE_BIN" class --plan "$manifest" "${options[@]}" -- "$1") || status=$?
  say "missing: {left} of the submissions in {folder}, named in {manifest}" \
    left "$left" folder "$1" manifest "$manifest"
fi
# A lab file has rules of time.
"$GRADE_BIN" leaderboard --out "$GRADE_OUT" ${GRADE_ROSTER:+--roster "$GRADE_ROSTER"} \
  ${GRADE_LAB:+--lab "$GRADE_LAB"} \
  --html "$GRADE_OUT/leaderboard.html" --csv "$GRADE_OUT/leaderboard.csv" || status=$?
exit $status
