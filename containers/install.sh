#!/bin/sh
# install.sh [SOURCES [EXTRA]]: what every image holds: a C++ compiler, Python, the grader in /opt/grader
# with its own C++ compiled, and the program that starts it. Run as root. EXTRA is a GPU extra of
# pyproject.toml, such as cuda13. pip's variables (PIP_NO_INDEX, PIP_FIND_LINKS) are obeyed. Without
# SOURCES only the compiler and Python.
set -eu
export DEBIAN_FRONTEND=noninteractive

if ! dpkg --status g++ python3-venv util-linux >/dev/null 2>&1; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends g++ python3 python3-venv util-linux
  rm -rf /var/lib/apt/lists/*
fi
[ $# -gt 0 ] || exit 0
python3 -m venv /opt/grader
# The engine is compiled below, for this machine's CPU, so ptxsim's wheel brings none.
SKBUILD_WHEEL_CMAKE=0 /opt/grader/bin/pip install --quiet --no-cache-dir "$1/ptxsim" "$1${2:+[$2]}"
SGEMM_GRADER_CACHE=/opt/grader/cache /opt/grader/bin/grade doctor
chmod -R go+rX /opt/grader
install -m 755 "$(dirname "$0")/grade.sh" /usr/local/bin/grade
