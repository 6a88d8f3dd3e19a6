/* SPDX-License-Identifier: Apache-2.0
 *
 * Text in an HTML file.
 */
#include "tools/profile/profile.h"

/* What HTML gives a meaning is escaped; control characters are dropped. */
void html_text(const char *text, FILE *out)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p == '<' || *p == '>' || *p == '&' || *p == '"')
            fprintf(out, "&#%d;", *p);
        else if (*p >= 0x20 || *p == '\n')
            fputc(*p, out);
}
