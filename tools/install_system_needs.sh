#!/bin/sh
# Install the programs that some tests run, given as their (Debian) names: quietly when this is root on a system with
# apt-get, otherwise say which tests will not run. A machine without them is no error: the tests that need one are skipped.
missing=""
for program in "$@"; do
  command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  # shellcheck disable=SC2086 # one word a package
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 ||
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } >/dev/null 2>&1
fi
for program in $missing; do
  command -v "$program" >/dev/null 2>&1 || {
    echo "NOT RUN: the tests that need '$program' are skipped, it is not installed and could not be" >&2
    echo "    fix: as root, apt-get install $program" >&2
  }
done
exit 0
