#!/bin/sh
# Run the commands of a page again: what follows "$ " in its ```console blocks, in the
# current folder, one shell for all. The page goes to standard output, with what the
# commands print now.
#   scripts/transcript.sh docs/first-plugin.md >page.md
console=0
exec 3<"$1"
while IFS= read -r line <&3; do
    case $console$line in
    '0```console') console=1 ;;
    '1```') console=0 ;;
    '1$ '*)
        printf '%s\n' "$line"
        eval "${line#\$ }" </dev/null 3<&- 2>&1
        continue ;;
    1*) continue ;; # what it printed then
    esac
    printf '%s\n' "$line"
done
