#!/bin/sh
# Make a C table of files, so that a program carries them wherever it is installed.
#   scripts/embed.sh FILE... >table.c
echo '/* Made by scripts/embed.sh. */'
echo '#include "tools/new_layer/template.h"'
echo 'const struct template_file template_files[] = {'
for file; do
    printf '    {"%s",\n' "$(basename "$file")"
    sed 's/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g; s/.*/     "&\\n"/' "$file"
    echo '    },'
done
echo '    {0},'
echo '};'
