/* SPDX-License-Identifier: Apache-2.0
 *
 * Building sections: what an INI file will say.
 */
#include "network/import/section.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "io/stream.h"

struct section *section_make(struct graph *g, const char *type, const struct node *node)
{
    struct section *s = arena_get(&g->arena, 1, sizeof *s);
    if (s)
        *s = (struct section){.type = type, .node = node};
    return s;
}

void section_free(struct section *s)
{
    if (!s)
        return;
    free(s->params_memory);
    s->params_memory = NULL;
}

void section_word(struct graph *g, struct section *s, const char *key, const char *word)
{
    int i = 0;
    while (s && i < s->n_attrs && strcmp(s->attrs[i].key, key) != 0)
        i++;
    if (!s || !word || i == SECTION_ATTRS) {
        g->arena.full |= s && word;
        return;
    }
    s->attrs[i] = (struct section_attr){.key = key, .value = word};
    s->n_attrs += i == s->n_attrs;
}

void section_flag(struct graph *g, struct section *s, const char *key, bool on)
{
    section_word(g, s, key, on ? "yes" : "no");
}

void section_integer(struct graph *g, struct section *s, const char *key, int64_t v)
{
    section_integers(g, s, key, &v, 1);
}

void section_integers(struct graph *g, struct section *s, const char *key,
                      const int64_t *v, int64_t n)
{
    char *text = NULL;
    size_t size;
    FILE *f = s ? text_stream(&text, &size) : NULL;
    for (int64_t i = 0; f && i < n; i++)
        fprintf(f, "%s%" PRId64, i ? ", " : "", v[i]);
    if (f && text_finish(f, &text))
        section_word(g, s, key, n ? arena_text(&g->arena, text, strlen(text)) : "\"\"");
    else
        g->arena.full |= s != NULL;
    free(text);
}

void section_real(struct graph *g, struct section *s, const char *key, double v)
{
    section_reals(g, s, key, &v, 1);
}

static void put_float(FILE *f, double v)
{
    const bool narrow = (float)v == v || v != v;
    char text[TEXT_REAL], *end;
    for (int digits = 6; digits <= 17; digits++) {
        text_real(text, digits, v);
        const double back = text_to_real(text, &end);
        if (narrow ? (float)back == (float)v : back == v)
            break;
    }
    fputs(text, f);
}

void section_reals(struct graph *g, struct section *s, const char *key, const double *v,
                   int64_t n)
{
    char *text = NULL;
    size_t size;
    FILE *f = s ? text_stream(&text, &size) : NULL;
    for (int64_t i = 0; f && i < n; i++) {
        fputs(i ? ", " : "", f);
        put_float(f, v[i]);
    }
    if (f && text_finish(f, &text))
        section_word(g, s, key, n ? arena_text(&g->arena, text, strlen(text)) : "\"\"");
    else
        g->arena.full |= s != NULL;
    free(text);
}

void section_in(struct graph *g, struct section *s, int value)
{
    int *in =
        s ? arena_grow(&g->arena, s->in, &s->in_capacity, (size_t)s->n_in, sizeof *in)
          : NULL;
    if (!in)
        return;
    s->in = in;
    s->in[s->n_in++] = value;
}

void section_out(struct graph *g, struct section *s, int value)
{
    section_out_rank(g, s, value, -1);
}

void section_out_rank(struct graph *g, struct section *s, int value, int rank)
{
    size_t capacity = s ? s->out_capacity : 0;
    int *out =
        s ? arena_grow(&g->arena, s->out, &s->out_capacity, (size_t)s->n_out, sizeof *out)
          : NULL;
    int *ranks =
        out ? arena_grow(&g->arena, s->ranks, &capacity, (size_t)s->n_out, sizeof *ranks)
            : NULL;
    if (!ranks)
        return;
    s->out = out;
    s->ranks = ranks;
    s->out[s->n_out] = value;
    s->ranks[s->n_out++] = rank;
}

void section_weight(struct section *s, const char *name, int value)
{
    if (s && value >= 0 && s->n_weights < SECTION_WEIGHTS)
        s->weights[s->n_weights++] = (struct section_weight){name, value};
}
