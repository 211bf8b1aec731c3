#!/usr/bin/env bash
# The command for students:  slurm/judge.sh SUBMISSION [options of sbatch]
# Submits a job, follows the queue and the log, and exits with grade's status.
set -uo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh" || { echo "$0: ${trouble:-no settings.sh beside it; run it in its checkout}" >&2; exit 3; }
(($#)) || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
shopt -s nullglob
own=("$1"/*.cu) others=("$1"/*/*.cu)
shopt -u nullglob
wrong=
if [[ ! -e $1 ]]; then
  wrong="no such folder"
elif [[ ! -d $1 ]]; then
  wrong="a file; name the folder that holds it"
elif ((${#own[@]} == 0 && ${#others[@]})); then
  wrong="a folder of submissions; name one, such as ${others[0]%/*}, or grade all with slurm/class.sh"
fi
[[ -z $wrong ]] || { echo "$0: $1: $wrong" >&2; exit 2; }
submission=$1
shift
hand_over
ask "" || exit
# Options from the command line come last and take precedence.
job=$(sbatch --parsable "${asked[@]}" "$@" "$home/slurm/run.sh" "${handed[@]}" "$submission") || exit 3
job=${job%%;*}
log=$GRADE_OUT/logs/$job.log
echo "Started slurm job $job, waiting..."
echo "Its log: $log"

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

shown=0
follow() { # what the log has got since
  local size
  size=$(stat -c %s "$log" 2>/dev/null) || return
  tail -c +$((shown + 1)) "$log" | head -c $((size - shown))
  shown=$size
}
ended() { [[ -r $log && $(tail -n 1 "$log") == "Job $job ended "* ]]; }
poll=${GRADE_POLL:-15} # seconds: squeue costs all users of a cluster
said='' next=0
until ended; do
  follow
  # A controller that is busy fails to answer; a job that is over is not in the answer.
  if ((SECONDS >= next)) && queue=$(squeue -h -S -p -o '%F|%T|%r' 2>/dev/null); then
    IFS='|' read -r place state reason < <(awk -F'|' -v OFS='|' -v job="$job" \
      '$2 == "PENDING" {++n} $1 == job {print n + 0, $2, $3; exit}' <<<"$queue") || break
    now="The job waits ($reason) at place $place in the queue."
    if [[ $state == PENDING && $reason != None && $now != "$said" ]]; then echo "$now" && said=$now; fi
  fi
  ((SECONDS < next)) || next=$((SECONDS + poll))
  sleep 0.5
done
follow

# Slurm's status is not the grader's: only the result document counts, and only this job's.
"$GRADE_BIN" report --no-report --device "$GRADE_DEVICE" --out "$GRADE_OUT" \
  ${GRADE_LAB:+--lab "$GRADE_LAB"} --job "$job" -- "$submission" >/dev/null 2>&1
status=$?
((status != 3)) || echo "No result was recorded: read $log, then grade again with the same command."
exit $status
