# Runs one part of g++, so that g++ ends with its status even when a signal ended it.
"$@"
exit $?
