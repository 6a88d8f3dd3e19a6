/* SPDX-License-Identifier: Apache-2.0
 *
 * The names that [profile] defines: each stands for one number, or for the sizes of a
 * range, of which some are listed.
 */
#include "ini/scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static int compare_int64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Ascending, each once, and within [least, CONFIG_MAX_SIZE]. */
static bool read_sizes(struct config *c, const struct config_pair *p, struct span s,
                       int64_t least, int64_t most, struct config_symbol *out)
{
    size_t n;
    if (!span_ints(c, p, s, least, most, out->sizes, CONFIG_MAX_SIZES, &n, NULL))
        return false;
    qsort(out->sizes, n, sizeof *out->sizes, compare_int64);
    for (size_t i = 1; i < n; i++)
        if (out->sizes[i] == out->sizes[i - 1]) {
            config_error(c, span_place(c, p, s), "%" PRId64 " stands twice",
                         out->sizes[i]);
            return false;
        }
    out->n_sizes = n;
    return true;
}

/* The end of a range is one of its sizes. */
static bool add_end(struct config *c, const struct config_pair *p,
                    struct config_symbol *out)
{
    if (out->n_sizes && out->sizes[out->n_sizes - 1] == out->most)
        return true;
    if (out->n_sizes == CONFIG_MAX_SIZES) {
        config_error(c, p->value_place,
                     "more than %d sizes, with %" PRId64 ", the end of the range",
                     CONFIG_MAX_SIZES, out->most);
        return false;
    }
    out->sizes[out->n_sizes++] = out->most;
    return true;
}

/* Sizes of a range by steps are so many steps behind its begin. */
static bool check_step(struct config *c, const struct config_pair *p,
                       const struct config_symbol *s)
{
    if ((s->most - s->least) % s->step) {
        config_error(c, p->value_place,
                     "a range from %" PRId64 " by steps of %" PRId64
                     " does not end at %" PRId64,
                     s->least, s->step, s->most);
        return false;
    }
    for (size_t i = 0; i < s->n_sizes; i++)
        if ((s->sizes[i] - s->least) % s->step) {
            config_error(c, p->value_place,
                         "%" PRId64 " is no size of a range from %" PRId64
                         " by steps of %" PRId64,
                         s->sizes[i], s->least, s->step);
            return false;
        }
    return true;
}

/* "512", or "512/32" with a step. */
static bool read_end(struct config *c, const struct config_pair *p, struct span to,
                     struct config_symbol *out)
{
    const char *slash = memchr(to.text, '/', to.n);
    const size_t n = slash ? (size_t)(slash - to.text) : to.n;
    const struct span step =
        slash ? span_trim((struct span){slash + 1, to.n - n - 1}) : to;
    return span_int(c, p, span_trim((struct span){to.text, n}),
                    out->least > 0 ? out->least : 1, INT32_MAX, &out->most) &&
           (!slash || span_int(c, p, step, 1, INT32_MAX, &out->step));
}

/* "1..512: 32, 128", "32..512/32: 256"; dots: where the two are. */
static bool read_range(struct config *c, const struct config_pair *p, const char *dots,
                       struct config_symbol *out)
{
    const struct span all = span_whole(p);
    const char *colon = memchr(all.text, ':', all.n), *end = all.text + all.n;
    const char *last = colon ? colon : end;
    const struct span from =
        span_trim((struct span){all.text, (size_t)(dots - all.text)});
    if (last < dots + 2) {
        config_error(c, p->value_place, "a range is written \"1..512: 32, 128\"");
        return false;
    }
    const struct span to = span_trim((struct span){dots + 2, (size_t)(last - dots - 2)});
    if (!span_int(c, p, from, 0, INT32_MAX, &out->least) || !read_end(c, p, to, out))
        return false;
    if (colon) {
        const struct span list =
            span_trim((struct span){colon + 1, (size_t)(end - colon - 1)});
        if (!read_sizes(c, p, list, out->least, out->most, out))
            return false;
    }
    return check_step(c, p, out) && add_end(c, p, out);
}

static bool read_symbol(struct config *c, const struct config_pair *p,
                        struct config_symbol *out)
{
    const char *dots = p->invalid ? NULL : strstr(p->value, "..");
    if (p->invalid)
        return false;
    if (dots)
        return read_range(c, p, dots, out);
    if (strchr(p->value, ',')) {
        if (!read_sizes(c, p, span_whole(p), 1, INT32_MAX, out))
            return false;
        out->least = 1;
        out->most = out->sizes[out->n_sizes - 1];
        return true;
    }
    if (!config_int(c, p, 1, INT32_MAX, &out->most))
        return false;
    out->least = out->sizes[0] = out->most;
    out->n_sizes = 1;
    return true;
}

void config_profile(struct config *c)
{
    struct config_section *s = config_find(c, "profile");
    if (!s || c->symbols)
        return;
    c->symbols = zalloc(s->n_pairs, sizeof *c->symbols, "symbols", NULL);
    for (size_t i = 0; c->symbols && i < s->n_pairs; i++) {
        struct config_pair *p = &s->pairs[i];
        struct config_symbol *symbol = &c->symbols[i];
        p->used = true;
        symbol->name = p->key;
        symbol->step = 1;
        symbol->place = p->value_place;
        if (!read_symbol(c, p, symbol))
            symbol->most = -1;
        if (names_put(&c->symbol_index, p->key, (int)i, NULL) != STRATA_OK)
            c->no_memory = true;
        c->n_symbols = i + 1;
    }
    if (!c->symbols)
        c->no_memory = true;
}

size_t config_symbols(const struct config *c, const struct config_symbol **out)
{
    *out = c->symbols;
    return c->n_symbols;
}

void config_check_profile(struct config *c)
{
    enum { MOST = 64 };
    const char *names[MOST];
    size_t n = 0;
    for (size_t i = 0; i < c->n_symbols && n < MOST; i++)
        if (c->symbols[i].used)
            names[n++] = c->symbols[i].name;
    for (size_t i = 0; i < c->n_symbols; i++) {
        const struct config_symbol *s = &c->symbols[i];
        const char *near = s->used ? NULL : config_nearest(c, s->name, names, n);
        if (!s->used && s->place.file < 0)
            config_error(c, s->place, "no dim of the network has the name '%s'%s%s%s",
                         s->name,
                         near ? "; did you mean '"
                         : n  ? ""
                              : "; none has a name, so an input's is another by --set "
                                "'input NAME.shape=...'",
                         near ? near : "", near ? "'?" : "");
    }
}
