#!/usr/bin/env bash
# The command for students:  slurm/judge.sh SUBMISSION [options of sbatch]
# Submits a job, follows the queue and the log, and exits with grade's status.
set -uo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh" || { echo "$0: ${trouble:-no settings.sh beside it; run it in its checkout}" >&2; exit 3; }
[[ $# -ge 1 && -d $1 ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
submission=$1
shift
hand_over
# Options from the command line come last and take precedence.
# shellcheck disable=SC2046 # one word or none
job=$(sbatch --parsable $(gpu_request "") "$@" "$home/slurm/run.sh" "${handed[@]}" "$submission") || exit 3
log=$GRADE_OUT/logs/$job.log
echo "Started slurm job $job, waiting..."

# shellcheck disable=SC2317,SC2329 # called by the trap
leave() {
  trap - INT
  local answer=l
  if [[ -t 0 ]]; then
    printf '\nDo you want to [l]eave job %s running, or to [c]ancel it? ' "$job"
    read -r answer || answer=l
  fi
  if [[ $answer == c* ]]; then
    scancel "$job" && echo "The job was cancelled."
  else
    echo "Job $job goes on; its log is $log."
  fi
  exit 130
}
trap leave INT

shown=0 silent=0 said=
while :; do
  state=$(squeue -h -j "$job" -o %T 2>/dev/null | head -n 1)
  if [[ $state == PENDING ]]; then
    reason=$(squeue -h -j "$job" -o %r | head -n 1)
    before=$(squeue -h -t PENDING -S -p -o %i | sed "/^$job\$/q" | wc -l)
    now="The job waits ($reason) at place $before in the queue."
    [[ $now == "$said" ]] || echo "$now"
    said=$now
  elif [[ -r $log ]]; then
    tail -n +$((shown + 1)) "$log"
    shown=$(wc -l <"$log")
  fi
  # A busy controller may fail to answer once; a finished job stays away.
  if [[ -n $state && $state != COMPLETED && $state != FAILED ]]; then silent=0; else silent=$((silent + 1)); fi
  ((silent < 2)) || break
  sleep "${GRADE_POLL:-1}"
done
[[ -r $log ]] && tail -n +$((shown + 1)) "$log"

# Slurm's status is not the grader's: only the result document counts, and only this job's.
"$GRADE_BIN" report --no-report --device "$GRADE_DEVICE" --out "$GRADE_OUT" \
  ${GRADE_LAB:+--lab "$GRADE_LAB"} --job "${job%%;*}" -- "$submission" >/dev/null 2>&1
status=$?
((status != 3)) || echo "No result was recorded: read $log, then grade again with the same command."
exit $status
