#!/usr/bin/env bash
# Says what Slurm would refuse, before anything is submitted:  slurm/check.sh [TYPE] [TASKS]
# TYPE is a GPU type such as a100, TASKS the size of an array. It looks at the partitions, the memory
# and the array that the scripts here request, and without TASKS, by srun on a node that is free, at
# the sandbox there. Ends with status 1 if something would be refused. Settings: those of settings.sh.
set -uo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=slurm/settings.sh
source "$home/slurm/settings.sh" || { echo "$0: ${trouble:-no settings.sh beside it; run it in its checkout}" >&2; exit 3; }
type=${1:-} tasks=${2:-} status=0
[[ $# -le 2 && ($# -lt 2 || $tasks =~ ^[1-9][0-9]{0,8}$) ]] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
ask "$type" || exit
config=$(scontrol show config) || { echo "$0: Slurm does not answer" >&2; exit 3; }
tell() { printf '%-10s %s\n' "$1" "$2"; }
refuse() { tell "$1" "refused: $2" && status=1; }
try() { # whether Slurm would take this job; why not, or where it would run, goes to said
  local taken
  said=$(sbatch --test-only "$@" 2>&1)
  taken=$?
  said=$(sed -n '$s/^\(sbatch: \)*\(error: \)*\(allocation failure: \)*//p' <<<"$said")
  return $taken
}
largest() { sinfo -h ${SBATCH_PARTITION:+-p "$SBATCH_PARTITION"} -o %m | tr -d + | sort -n | tail -n 1; }

why="GRADE_MEM: MiB that a job requests; empty: limits.memory_mb of the lab + 4096; none: nothing"
amount="$memory MiB"
[[ $memory != none ]] || amount="nothing is requested"
try "${asked[@]}" "$home/slurm/run.sh"
taken=$? reason=$said
if ((taken == 0)); then
  partition=${said##* }
  tell partition "$partition"
  [[ $(sinfo -h -p "$partition" -o %a | sort -u) == up ]] || refuse partition "$partition is down: jobs would wait"
  tell memory "$amount. $why"
elif ! try "$home/slurm/run.sh"; then # which part of the request is the cause?
  refuse partition "$said; there are $(sinfo -h -o '%P (%a)' | sort -u | paste -sd ' '): set SBATCH_PARTITION, SBATCH_ACCOUNT"
elif ! try ${gres:+"$gres"} "$home/slurm/run.sh"; then
  refuse GPU "$gres: $said; there are $(sinfo -h -o '%G in %P' | grep -v null | sort -u | paste -sd ' '): set GRADE_GRES, SBATCH_PARTITION"
else
  refuse memory "$amount: $reason; a node has $(largest) MiB at most. $why"
fi
if [[ -n $tasks || -n ${GRADE_CPU_PARTITION:-} ]]; then
  cpu=(--cpus-per-task=2 ${GRADE_CPU_PARTITION:+--partition="$GRADE_CPU_PARTITION"})
  if try "${cpu[@]}" "$home/slurm/leaderboard.sh"; then
    tell "on CPUs" "${said##* }, for the jobs that compile and rank"
  else
    refuse "on CPUs" "${cpu[*]}: $said; set GRADE_CPU_PARTITION"
  fi
fi

# Indices end before MaxArraySize.
longest=$(awk '$1 == "MaxArraySize" {print $3}' <<<"$config")
if [[ -n $tasks ]] && ((tasks > longest)); then
  refuse array "$tasks tasks; MaxArraySize is $longest: raise GRADE_CHUNK, the submissions per task"
elif [[ -n $tasks ]] && ((status == 0)) && ! try "${asked[@]}" --array="0-$((tasks - 1))" "$home/slurm/run.sh"; then
  refuse array "$tasks tasks: $said"
else
  tell array "${tasks:+$tasks tasks, of }at most $longest"
fi

if [[ -z $tasks ]] && ((status == 0)); then
  on=(${SBATCH_PARTITION:+--partition="$SBATCH_PARTITION"} ${SBATCH_ACCOUNT:+--account="$SBATCH_ACCOUNT"}
    ${SBATCH_QOS:+--qos="$SBATCH_QOS"} ${SBATCH_RESERVATION:+--reservation="$SBATCH_RESERVATION"})
  [[ $memory == none ]] || on+=(--mem="${memory}M")
  seen=$(srun --quiet --immediate=20 --job-name=grade-check --time=5 --ntasks=1 --cpus-per-task=2 \
    ${gres:+"$gres"} "${on[@]}" "$GRADE_BIN" doctor --language en 2>&1)
  found=$(awk '/^nvdisasm /{on = 0} /^sandbox /{on = 1} on' <<<"$seen")
  case $found in
    'sandbox '*' ok '*) tell sandbox "$(sed -n '1s/.* ok *//p' <<<"$found")" ;;
    '') tell sandbox "not known: $(tail -n 1 <<<"$seen"); ask a node later" ;;
    *) refuse sandbox $'hidden sizes and --sandbox require:\n'"$found" ;;
  esac
fi
exit $status
