#!/usr/bin/env bash
# Grades submissions on one node:  sbatch slurm/run.sh SUBMISSION…
# In an array, each task takes its share:  sbatch --array=0-9 slurm/run.sh submissions/*
# Give GPU type, partition and account to sbatch before the script, e.g. --gres=gpu:a100:1
# `run.sh --class DIR MANIFEST N` grades part I of N in task I, `run.sh --ladder` the reference rungs.
#SBATCH --job-name=grade
#SBATCH --output=/dev/null
#SBATCH --ntasks=1 --cpus-per-task=2
#SBATCH --time=00:20:00
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
set -uo pipefail
stop() { # before there is a log: where Slurm itself would write
  echo "run.sh: $1" >&2
  local file=slurm-${SLURM_JOB_ID:-}.out
  [[ -z ${SLURM_JOB_ID:-} ]] || echo "run.sh: $1" >>"${SLURM_SUBMIT_DIR:-.}/$file" ||
    echo "run.sh: $1" >>"${HOME:-/tmp}/$file"
  exit 3
}
[[ -n ${SLURM_JOB_ID:-} ]] || stop "this is a job; submit it with sbatch"
if [[ ${1:-} == --settings ]]; then # see settings.sh; up to --, so that no file name can be one
  while shift && [[ ${1:-} == GRADE_*=* ]]; do export "${1?}"; done
  [[ ${1:-} == -- ]] || stop "--settings: expected GRADE_NAME=value, then --"
  shift
fi

home=${GRADE_HOME:-} restarts=${SLURM_RESTART_COUNT:-0}
if [[ -z $home ]]; then # where sbatch found this script
  home=$(scontrol show job "$SLURM_JOB_ID" | LC_ALL=C sed -n '/^ *Command=/{s|^ *Command=\(.*\)/slurm/run\.sh.*|\1|p;q}')
fi
: "${home:=$SLURM_SUBMIT_DIR}"
cd "$SLURM_SUBMIT_DIR" || stop "$SLURM_SUBMIT_DIR is no folder on $(hostname)"
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh" ||
  stop "${trouble:-no checkout in $home: submit the slurm/run.sh of one, or set GRADE_HOME}"
job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
# An --output in a missing folder would fail silently.
exec >>"$GRADE_OUT/logs/$job.log" 2>&1 || stop "$GRADE_OUT/logs/$job.log cannot be written"
[[ $restarts =~ ^[0-9]{1,9}$ ]] || stop "SLURM_RESTART_COUNT=$restarts: not a number" # bash would evaluate it
echo "Job $job started on $(hostname) at $(date -Is), restart $restarts."
[[ -z $GRADE_MODULE ]] || ! command -v module >/dev/null || module load "$GRADE_MODULE" 2>/dev/null ||
  echo "The module $GRADE_MODULE could not be loaded."

if [[ ${1:-} == --class ]]; then # builds were made ahead, in the shared cache
  export SGEMM_GRADER_CACHE=$GRADE_CACHE
  work=(class "${options[@]}" --manifest "$3" --part "${SLURM_ARRAY_TASK_ID:-0}/$4"
    --jobs "${SLURM_CPUS_PER_TASK:-1}" -- "$2")
elif [[ ${1:-} == --ladder ]]; then
  work=(ladder "${options[@]}" --jobs "${SLURM_CPUS_PER_TASK:-1}")
else
  export SGEMM_GRADER_CACHE=${SGEMM_GRADER_CACHE:-${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/sgemm-grader-$UID}
  mine=()
  for ((i = 1; i <= $#; i++)); do
    ((i % ${SLURM_ARRAY_TASK_COUNT:-1} == ${SLURM_ARRAY_TASK_ID:-0} % ${SLURM_ARRAY_TASK_COUNT:-1})) && mine+=("${!i}")
  done
  ((${#mine[@]})) || { echo "This task has no submission to grade." && exit 0; }
  work=("${options[@]}" -- "${mine[@]}") # a name may begin with a dash, or equal a command's
fi

# This shell handles signals only between two commands, so grade runs in the background.
grading=
trap 'kill -USR1 $grading 2>/dev/null' USR1 # the time limit is near: tell grade
trap 'kill -TERM $grading 2>/dev/null' TERM # cancelled
"$GRADE_BIN" "${work[@]}" &
grading=$!
wait $grading
while kill -0 $grading 2>/dev/null; do wait $grading; done # after a trap: go on waiting
wait $grading # how it ended, which the shell remembers; a trap may have answered before
status=$?
[[ -z ${GRADE_PROFILE:-} ]] || ((status)) || { # its figures belong on the page
  own=(--out "$GRADE_OUT" ${GRADE_LAB:+--lab "$GRADE_LAB"} -- "${mine[@]}")
  "$GRADE_BIN" profile "${own[@]}" && "$GRADE_BIN" report -q "${own[@]}"; }
# 3: the GPU was shared, or the machine failed. Nothing was recorded; another try, another node.
if ((status == 3 && restarts < GRADE_RETRIES)); then
  echo "The job goes back to the queue, try $((restarts + 1)) of $GRADE_RETRIES."
  scontrol requeue "$SLURM_JOB_ID" && { sleep 30; exit 3; } # Slurm ends it; it is not over
fi
[[ -z ${GRADE_HAND_IN:-} ]] || ((status > 2)) || echo "$job $status" >"$GRADE_HAND_IN/ended" # for serve-submission; others may run again
echo "Job $job ended with status $status." # judge.sh waits for this line
exit $status
