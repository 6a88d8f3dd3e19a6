/* SPDX-License-Identifier: Apache-2.0
 *
 * One name for several layers: what their names share, and the rest in braces.
 */
#include "network/merge/merge.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "io/stream.h"

static const char *name_of(const strata_network *net, const struct network_siblings *g,
                           int chain, int k)
{
    return net->layers[network_sibling(g, chain, k)].name;
}

/* Where words of a name end, as in "inception_3a/1x1.relu". */
static bool is_gap(char c)
{
    return strchr("./:_-", c) != NULL;
}

/* Characters that all names begin with; or that what follows those ends with. Whole words
 * alone. */
static size_t common(const strata_network *net, const struct network_siblings *g, int k,
                     bool end, size_t begin)
{
    const char *a = name_of(net, g, 0, k);
    const size_t n = strlen(a);
    size_t most = n - begin;
    for (int c = 1; c < g->n; c++) {
        const char *b = name_of(net, g, c, k);
        const size_t m = strlen(b);
        size_t same = 0;
        while (same < most && same < m - begin &&
               (end ? a[n - 1 - same] == b[m - 1 - same] : a[same] == b[same]))
            same++;
        most = same;
    }
    while (most > 0 && !is_gap(end ? a[n - most] : a[most - 1]))
        most--;
    return most;
}

char *network_siblings_name(const strata_network *net, const struct network_siblings *g,
                            int k, strata_error *err)
{
    enum { SHOWN = 4 };
    const size_t head = common(net, g, k, false, 0), tail = common(net, g, k, true, head);
    const char *first = name_of(net, g, 0, k);
    char *text = NULL;
    size_t size;
    FILE *f = text_stream(&text, &size);
    if (f)
        fprintf(f, "%.*s{", (int)head, first);
    for (int c = 0; f && c < g->n; c++) {
        const char *name = name_of(net, g, c, k);
        if (g->n > SHOWN && c == SHOWN - 1) { /* the last one stands for the rest */
            fprintf(f, ",..%d..", g->n - SHOWN);
            c = g->n - 1;
            name = name_of(net, g, c, k);
        }
        fprintf(f, "%s%.*s", c ? "," : "", (int)(strlen(name) - head - tail),
                name + head);
    }
    if (f)
        fprintf(f, "}%s", first + strlen(first) - tail);
    char *name = f ? text_finish(f, &text) : NULL;
    if (!name)
        error_no_memory(err, 0, "a name");
    return name;
}
