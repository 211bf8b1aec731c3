# Settings of all scripts here; sourced, never run. The environment takes precedence over site.env,
# and site.env over the defaults below. docs/cluster.md explains each setting. Where it fails, the
# reason is in $trouble: without its settings a script must not go on, with another lab perhaps.
# shellcheck shell=bash

# Slurm runs a copy of a batch script, so the script's path does not lead here: the checkout is
# GRADE_HOME, or the folder that this file was sourced from.
GRADE_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
trouble=
if [[ -z ${GRADE_SITE:-} ]]; then
  GRADE_SITE=$GRADE_HOME/slurm/site.env
  [[ -e $GRADE_SITE || -L $GRADE_SITE ]] || GRADE_SITE=
fi
if [[ -n $GRADE_SITE ]]; then
  if [[ ! -r $GRADE_SITE || -d $GRADE_SITE ]]; then
    trouble="GRADE_SITE=$GRADE_SITE cannot be read"
    return 3
  fi
  if ! trouble=$(bash -n "$GRADE_SITE" 2>&1); then return 3; fi
  # Restore settings from the environment over those of the file.
  declare -A given=()
  while IFS='=' read -r -d '' name value; do
    [[ $name == GRADE_* ]] && given[$name]=$value
  done < <(env -0)
  set -a
  # shellcheck source=/dev/null
  source "$GRADE_SITE"
  set +a
  for name in "${!given[@]}"; do export "$name=${given[$name]}"; done
  unset given name value
fi

: "${GRADE_OUT:=$PWD/results}"              # results, reports, logs; shared by all nodes
: "${GRADE_DEVICE:=gpu}"                    # cpu: the simulator, no GPU needed
: "${GRADE_LAB:=}"                          # lab file; empty: the default lab
: "${GRADE_OPTIONS:=}"                      # further options of grade, split at blanks
: "${GRADE_MODULE:=cuda}"                   # loaded where `module` exists and knows it; empty: none
: "${GRADE_GRES:=gpu}"                      # what a job requests, without a count; none: no GPU
: "${GRADE_MEM:=}"                          # MiB that a job requests; empty: by the lab's limits; none: nothing
: "${GRADE_RETRIES:=3}"                     # times a job goes back to the queue when the GPU was shared
: "${GRADE_CACHE:=$GRADE_OUT/.cache}"       # builds that are shared between nodes
: "${GRADE_PREPARED:=$GRADE_HOME/prepared}" # what `grade doctor --prepare` compiled for all
if [[ -d $GRADE_PREPARED ]]; then export SGEMM_GRADER_PREPARED=$GRADE_PREPARED; fi
if ! mkdir -p "$GRADE_OUT/logs" || [[ ! -w $GRADE_OUT/logs ]]; then
  # shellcheck disable=SC2034 # who sources this says it
  trouble="GRADE_OUT=$GRADE_OUT cannot be written to"
  return 3
fi
GRADE_OUT=$(cd "$GRADE_OUT" && pwd)

if [[ -z ${GRADE_BIN:-} ]]; then # the command itself
  GRADE_BIN=grade
  [[ -x $GRADE_HOME/.venv/bin/grade ]] && GRADE_BIN=$GRADE_HOME/.venv/bin/grade
fi
options=(--device "$GRADE_DEVICE" --out "$GRADE_OUT")
[[ -n $GRADE_LAB ]] && options+=(--lab "$GRADE_LAB")
# shellcheck disable=SC2206 # split at blanks on purpose
[[ -n $GRADE_OPTIONS ]] && options+=($GRADE_OPTIONS)

# Of a job on a GPU of type $1 ("": any): asked, options of sbatch; arch, or "-"; gres; memory in MiB.
ask() {
  local needs
  needs=$("$GRADE_BIN" labs --job "${1:-any}" ${GRADE_LAB:+--lab "$GRADE_LAB"}) || return
  # shellcheck disable=SC2034 # for who sources this
  read -r memory arch <<<"$needs"
  memory=${GRADE_MEM:-$memory} gres=
  [[ $GRADE_GRES == none ]] || gres=--gres=$GRADE_GRES${1:+:$1}:1
  # What Slurm itself says of a job belongs in its log.
  asked=(--output="${GRADE_OUT//%/%%}/logs/${2:-%j}.log" --open-mode=append ${gres:+"$gres"})
  [[ $memory == none ]] || asked+=(--mem="${memory}M")
}

# Every setting as an argument; run.sh and leaderboard.sh read these first, up to --. If a site sets
# SBATCH_EXPORT=NONE, this environment does not reach a job.
hand_over() {
  local name
  handed=(--settings)
  for name in "${!GRADE_@}"; do handed+=("$name=${!name}"); done
  handed+=(--)
}
