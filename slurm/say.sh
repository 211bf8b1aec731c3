# What the scripts say, in the language of the environment, from the catalogues of `grade`.
# Sourced by settings.sh, never run.
# shellcheck shell=bash

# The catalogue of the first language that there is one for; nothing for English. As `grade` has it.
catalogue() {
  local locale=${LC_ALL:-${LC_MESSAGES:-${LANG:-}}} code each file
  [[ ! ${locale%%.*} =~ ^(C|POSIX|)$ ]] || return 0
  local locales=()
  IFS=: read -ra locales <<<"${LANGUAGE:+$LANGUAGE:}$locale"
  for each in "${locales[@]}"; do
    code=${each%%[.@]*} code=${code//-/_}
    [[ ${code%%_*} != en ]] || return 0
    for file in "$GRADE_HOME/grader/language/"{"$code","${code%%_*}"{,_*}}.po; do
      [[ ! -r $file ]] || { echo "$file"; return 0; }
    done
  done
}
CATALOGUE=$(catalogue)

# say TEXT [NAME VALUE]…: the text, with VALUE where it has {NAME}.
say() {
  local text=$1 found=
  shift
  [[ -z $CATALOGUE ]] || found=$(wanted=$text awk '
    function piece(line) {
      sub(/^[^"]*"/, "", line); sub(/"$/, "", line); gsub(/\\"/, "\"", line)
      return line
    }
    /^msgid/ { if (right && said != "") exit; part = "id"; id = "" }
    /^msgstr/ { part = "said"; said = ""; right = id == ENVIRON["wanted"] }
    /^(msg|")/ { if (part == "id") id = id piece($0); else if (right) said = said piece($0) }
    END { if (right) print said }
  ' "$CATALOGUE")
  text=${found:-$text}
  while (($#)); do
    text=${text//"{$1}"/"$2"}
    shift 2
  done
  echo "$text"
}
