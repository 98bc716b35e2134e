#!/usr/bin/env bash
# commits.sh: checks the subjects of commits: `package: imperative summary`, 72
# characters at most. Commits up to BASE are older than the rule.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BASE=924f5f073edff10faae45db5f127132dd6ea7fad

if ! git merge-base --is-ancestor "$BASE" HEAD 2>/dev/null; then
  echo "lint: the history lacks commit ${BASE:0:8}, as in a shallow clone: no subject of a commit is checked" >&2
  exit 0
fi

# First words that are not imperatives: adds, added, adding.
inflected='^[^:]+: ([A-Za-z]+ed|[A-Za-z]+ing|[A-Za-z]*[^Ssu]s)( |$)'
# Imperatives with such endings.
verbs='^[^:]+: (bring|embed|exceed|feed|heed|need|proceed|seed|shed|speed|spring|string|succeed) '
bad=0
while IFS= read -r line; do
  subject=${line#* } why=
  [[ $subject =~ ^Revert\ \" ]] && continue
  if [ ${#subject} -gt 72 ]; then
    why="${#subject} characters, at most 72"
  elif ! [[ $subject =~ ^[A-Za-z0-9./_-]+(,\ [A-Za-z0-9./_-]+)*:\ [^\ ] ]]; then
    why="expected 'package: summary'"
  elif [[ $subject =~ $inflected && ! $subject =~ $verbs ]]; then
    why="expected an imperative after the colon"
  fi
  if [ -n "$why" ]; then
    echo "lint: commit ${line%% *}: $why: $subject" >&2
    bad=1
  fi
done < <(git log --no-merges --format='%h %s' "$BASE..HEAD")
exit $bad
