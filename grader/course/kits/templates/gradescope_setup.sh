#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the autograder's image. A failure here fails
# the build, so no submission is ever graded by an autograder that cannot grade.
set -euo pipefail
root=/autograder
source=$root/source

missing=()
command -v g++ >/dev/null || missing+=(g++)
command -v setpriv >/dev/null || missing+=(util-linux)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
if ((${#missing[@]})); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  echo "the grader needs Python 3.10: choose an image with Ubuntu 22.04 or newer" >&2
  exit 1
}

python3 -m venv "$root/venv"
"$root/venv/bin/pip" install --quiet "$source/<<wheel>>"

# Compiles the grader's own parts into its cache, and sees that a right program is accepted.
install -d -m 700 -o 65534 -g 65534 "$root/cache"
chmod -R a+rX "$source"
chmod a+x "$source/grade_here.sh"
"$source/grade_here.sh" "$source/check" --no-report --out "$root/cache/check"
rm -rf "$root/cache/check"
