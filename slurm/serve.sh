#!/usr/bin/env bash
# What `grade serve-submission` asks of this site:
#   serve.sh settings                  its GRADE_ variables, each ended by a zero byte
#   serve.sh queue JOB                 when Slurm told the queue, and the job there: SECONDS|STATE|PLACE|REASON
#   serve.sh submit TYPE FOLDER OPTION…   gives a folder to sbatch and prints the job's number; TYPE is that
#                                      of the GPU, or empty; SUBMIT_OPTIONS go to grade behind the site's
#   serve.sh find NAME                 our newest job of this name
#   serve.sh cancel JOB, serve.sh version
#   serve.sh board TYPE OPTION…        the leaderboard
set -euo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh" || { echo "$0: ${trouble:-no settings.sh beside it; run it in its checkout}" >&2; exit 3; }
export GRADE_SUBMIT=${GRADE_SUBMIT:-$GRADE_OUT/.submit} # hand-ins
verb=${1:-}
(($# == 0)) || shift
case $verb in submit | board)
  if [[ -n $1 ]]; then # results of different GPUs never overwrite one another
    GRADE_OUT=$GRADE_OUT/$1
    mkdir -p "$GRADE_OUT/logs"
  fi
  ;;
esac

# The queue in a file, of which the first line says when Slurm was asked, and when it answered. One of
# all who wait asks, for all, once in GRADE_POLL seconds.
refresh() {
  local asked answered now jobs
  exec 9>>"$1.lock"
  flock -n 9 || return 0
  read -r asked answered 2>/dev/null <"$1" || asked=0 answered=0
  now=$(date +%s)
  # A stamp from the future is of a machine whose clock is wrong.
  ((asked > now || now - asked >= ${GRADE_POLL:-15})) || return 0
  if jobs=$(squeue -h -t all -S -p -o '%F|%T|%P|%r'); then
    jobs=$(awk -F'|' -v OFS='|' '{print $1, $2, ($2 == "PENDING" ? ++waiting[$3] : 0), $4}' <<<"$jobs")
    answered=$now
  else
    jobs=$(tail -n +2 "$1" 2>/dev/null) || true
  fi
  printf '%s %s\n%s\n' "$now" "$answered" "$jobs" >"$1.new"
  mv "$1.new" "$1"
}

case $verb in
  settings)
    export "${!GRADE_@}"
    env -0 | grep -z ^GRADE_
    ;;
  queue)
    file=$GRADE_SUBMIT/.queue # no student is called so
    refresh "$file"
    read -r _ answered 2>/dev/null <"$file" || answered=0
    printf '%s|' "$answered"
    grep -m 1 "^$1|" "$file" 2>/dev/null | cut -d'|' -f2- || echo '|0|'
    ;;
  submit)
    type=$1 folder=$2
    shift 2
    GRADE_OPTIONS="$GRADE_OPTIONS ${SUBMIT_OPTIONS:-}"
    ask "$type"
    hand_over
    cd "$GRADE_OUT" # which the nodes see
    sbatch --parsable "${asked[@]}" "$@" "$home/slurm/run.sh" "${handed[@]}" "$folder" | cut -d';' -f1
    ;;
  find) squeue -h -t all -u "$UID" -n "$1" -o %F | sort -n | tail -n 1 ;;
  cancel) scancel "$1" ;;
  version) sinfo --version ;;
  board)
    shift
    "$GRADE_BIN" leaderboard --out "$GRADE_OUT" ${GRADE_ROSTER:+--roster "$GRADE_ROSTER"} "$@"
    ;;
  *)
    sed -n '2,10s/^# //p' "$0" >&2
    exit 2
    ;;
esac
