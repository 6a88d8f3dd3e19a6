#!/bin/sh
# Make a manual page of the command or of one of its subcommands.
#   scripts/man-page.sh STRATA VERSION ENVIRONMENT.md [SUBCOMMAND] >page.1
# The text is --help's, by $HELP2MAN. EXIT STATUS is a line of `strata --help`. ENVIRONMENT
# and FILES are the tables of docs/environment.md under its first four headings, with the
# folders that are variables of the environment ($(bindir) and so on) as they are. SEE ALSO
# names the other pages.
# help2man would fill the examples to one paragraph and name every page after the program
# alone: both are mended here.
set -eu
strata=$1 version=$2 environment=$3 command=${4:-}
page=strata${command:+-$command}
sections=$(mktemp) draft=$(mktemp)
trap 'rm -f "$sections" "$draft"' EXIT

# Rows of Markdown tables as tagged paragraphs.
tables='
function folders(text) {
    while (match(text, /\$\([a-z]*\)/))
        text = substr(text, 1, RSTART - 1) ENVIRON[substr(text, RSTART + 2, RLENGTH - 3)] \
            substr(text, RSTART + RLENGTH)
    return text
}
function roff(text) {
    gsub(/-/, "\\-", text)
    while (match(text, /`[^`]*`/))
        text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) \
            "\\fR" substr(text, RSTART + RLENGTH)
    return text
}
/^## / {
    n++
    section = n < 3 ? "ENVIRONMENT" : n < 5 ? "FILES" : ""
    if (n == 1 || n == 3)
        print "\n[" section "]"
}
section && /^\| `/ {
    gsub(/^\| | \|$/, "")
    split($0, cell, / \| /)
    print ".TP\n" roff(folders(cell[1]))
    if (section == "FILES")
        print roff(cell[2]) "."
    else
        print roff(cell[3]) ". Default: " roff(cell[4]) "." \
            (cell[5] == "ignored" ? " Ignored in privileged programs." : "")
}'

statuses() { # "Exit status: 0 success, 1 mismatch." as tagged paragraphs
    "$strata" --help | sed -n '/^Exit status: /{s///; s/\.$//; s/, /\n/g; p;}' |
        sed 's/^\([0-9]*\) /.TP\n.B \1\n/'
}

others() { # the pages but this one
    {
        echo strata
        "$strata" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/strata-\1/p'
    } | grep -vx -e "$page" | sed 's/-/\\-/g; s/.*/.BR & (1),/; $s/,$//'
}

{
    printf '[EXIT STATUS]\n'
    statuses
    awk "$tables" "$environment"
    printf '\n[SEE ALSO]\n'
    others
    echo '.PP'
    echo "$docdir/docs/README.md is the index of the documentation."
} >"$sections"

# Its line of the list, or what the command says of itself.
if [ -n "$command" ]; then
    summary=$("$strata" --help | sed -n "s/^  $command  *//p")
else
    summary=$("$strata" --help | sed -n '2s/\.$//p')
fi
"${HELP2MAN:-help2man}" --no-info --name="$summary" --version-string="$version" \
    --source="strata $version" --include="$sections" --output="$draft" \
    "$strata${command:+ $command}"
sed -e "/^\.TH /s/ STRATA / $(echo "$page" | tr a-z A-Z) /" \
    -e "s/^strata $command \\\\- /$page \\\\- /" \
    -e '/^\.PP$/{ N; /\nExit status: 0/d; }' "$draft" |
    awk '/^\.SH / { if (examples) print ".fi"; examples = $2 == "EXAMPLES" }
        { print examples && $0 == ".IP" ? ".nf" : $0 }'
