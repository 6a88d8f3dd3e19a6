/* SPDX-License-Identifier: Apache-2.0
 *
 * What was folded, by a text that tells it.
 */
#include "network/import/symbols/memo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "ini/names.h"
#include "io/stream.h"
#include "io/weights/weights.h"

#define SMALL_BYTES 256 /* of a constant that is told by its elements */

struct memo {
    struct arena arena;
    struct names index;    /* of results, by key */
    const void ***results; /* data of a section's outputs */
    size_t n, capacity;
};

struct memo *memo_make(strata_error *err)
{
    return zalloc(1, sizeof(struct memo), "what is folded", err);
}

void memo_free(struct memo *memo)
{
    if (!memo)
        return;
    names_free(&memo->index);
    arena_free(&memo->arena);
    free(memo);
}

struct arena *memo_arena(struct memo *memo)
{
    return memo ? &memo->arena : NULL;
}

static void put_constant(FILE *f, const struct value *v)
{
    const size_t bytes =
        v ? (size_t)value_count(v) * weight_dtype_size(weight_dtype_of(v->dtype)) : 0;
    fprintf(f, "|%d/%d", v ? v->dtype : -1, v ? v->rank : -1);
    for (int d = 0; v && d < v->rank; d++)
        fprintf(f, ",%" PRId64, v->dims[d]);
    if (!v || !v->data || bytes > SMALL_BYTES)
        fprintf(f, "@%p", v ? v->data : NULL);
    for (size_t i = 0; v && v->data && bytes <= SMALL_BYTES && i < bytes; i++)
        fprintf(f, "%02x", ((const unsigned char *)v->data)[i]);
}

const char *memo_key(struct memo *memo, const struct graph *g, const struct section *s)
{
    char *text = NULL;
    size_t size;
    FILE *f = memo ? text_stream(&text, &size) : NULL;
    if (!f)
        return NULL;
    fputs(s->layer->full_name, f);
    for (int i = 0; i < s->n_attrs; i++)
        fprintf(f, "\n%s=%s", s->attrs[i].key, s->attrs[i].value);
    for (int i = 0; i < s->n_in; i++)
        put_constant(f, graph_value(g, s->in[i]));
    for (int i = 0; i < s->n_weights; i++) {
        fprintf(f, "\n%s:", s->weights[i].name);
        put_constant(f, graph_value(g, s->weights[i].value));
    }
    for (int i = 0; i < s->n_out; i++) /* their dtype may be that of the model */
        fprintf(f, ">%d", s->out[i] >= 0 ? g->values[s->out[i]].dtype : -1);
    const char *key =
        text_finish(f, &text) ? arena_text(&memo->arena, text, strlen(text)) : NULL;
    free(text);
    return key;
}

bool memo_recall(struct memo *memo, const char *key, struct graph *g,
                 const struct section *s)
{
    const int at = key ? names_get(&memo->index, key) : -1;
    for (int i = 0; at >= 0 && i < s->n_out; i++) {
        struct value *v = graph_value(g, s->out[i]);
        if (!v)
            continue;
        v->constant = true;
        v->data = memo->results[at][i];
    }
    return at >= 0;
}

void memo_keep(struct memo *memo, const char *key, const struct graph *g,
               const struct section *s)
{
    const void ***all = key ? arena_grow(&memo->arena, memo->results, &memo->capacity,
                                         memo->n, sizeof *all)
                            : NULL;
    const void **data =
        all ? arena_get(&memo->arena, (size_t)s->n_out + 1, sizeof *data) : NULL;
    if (!data)
        return;
    for (int i = 0; i < s->n_out; i++)
        data[i] = s->out[i] >= 0 ? g->values[s->out[i]].data : NULL;
    memo->results = all;
    all[memo->n] = data;
    if (names_put(&memo->index, key, (int)memo->n, NULL) == STRATA_OK)
        memo->n++;
}
