/* SPDX-License-Identifier: Apache-2.0
 *
 * Dims that a model leaves free and gives a name, and the sizes that they are to have.
 */
#include "network/import/symbols/symbols.h"

#include <stdio.h>
#include <string.h>

#define MOST_ASSUMED 512 /* of a symbol whose range nobody tells */

/* ---- which ones ---- */

static bool is_constant(const struct import *im, const char *name)
{
    const struct onnx_graph *g = &im->model->graph;
    const struct import_options *o = &im->options;
    for (size_t i = 0; i < o->n_constants; i++)
        if (strcmp(o->constants[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < g->n_initializers; i++)
        if (strcmp(g->initializers[i].name, name) == 0)
            return true;
    return false;
}

/* Whether dims of the input are the model's. */
static bool is_free(const struct import *im, const struct onnx_value *in)
{
    for (size_t i = 0; i < im->options.n_shapes; i++)
        if (strcmp(im->options.shapes[i].name, in->name) == 0)
            return false;
    return in->form == ONNX_TENSOR && in->rank > 0 && !is_constant(im, in->name);
}

int import_find_symbol(const struct import *im, const struct onnx_dim *dim, bool first)
{
    for (int i = 0; i < im->n_symbols; i++)
        if (strcmp(im->symbols[i].symbol, dim->symbol) == 0 && (*dim->symbol || first))
            return i;
    return -1;
}

static const struct import_symbol *find_option(const struct import *im,
                                               const char *symbol)
{
    const char *called = *symbol ? symbol : IMPORT_UNNAMED;
    for (size_t i = 0; i < im->options.n_symbols; i++)
        if (strcmp(im->options.symbols[i].name, called) == 0)
            return &im->options.symbols[i];
    return NULL;
}

/* ---- how they are called ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_taken(const struct import *im, const char *name)
{
    for (int i = 0; i < im->n_symbols; i++)
        if (strcmp(im->symbols[i].name, name) == 0)
            return true;
    return false;
}

/* As a key of [profile]: "x" stands between dims, and begins with a letter. */
static void spell(const struct import *im, char out[CONFIG_MAX_KEY + 1],
                  const char *symbol)
{
    char stem[CONFIG_MAX_KEY - 1]; /* "_2" */
    const size_t n = strlen(symbol);
    const bool usable = n > 0 && n < sizeof stem && is_letter(*symbol) &&
                        strcmp(symbol, "x") != 0 && strcmp(symbol, "X") != 0;
    snprintf(stem, sizeof stem, "%s", usable ? symbol : IMPORT_UNNAMED);
    for (char *c = stem; *c; c++)
        if (!is_letter(*c) && !(*c >= '0' && *c <= '9'))
            *c = '_';
    snprintf(out, CONFIG_MAX_KEY + 1, "%s", stem);
    for (unsigned i = 2; is_taken(im, out); i++)
        snprintf(out, CONFIG_MAX_KEY + 1, "%s_%u", stem, i % 10);
}

/* ---- their sizes ---- */

/* Ascending, each once. */
static void add_size(struct symbol *s, int64_t v)
{
    size_t at = 0;
    while (at < s->n && s->sizes[at] < v)
        at++;
    if (s->n == CONFIG_MAX_SIZES || (at < s->n && s->sizes[at] == v))
        return;
    memmove(&s->sizes[at + 1], &s->sizes[at], (s->n - at) * sizeof *s->sizes);
    s->sizes[at] = v;
    s->n++;
}

static void take_sizes(const struct import *im, struct symbol *s)
{
    const struct import_symbol *o = find_option(im, s->symbol);
    for (size_t i = 0; o && i < o->n; i++)
        add_size(s, o->values[i]);
    s->first_summand = s->second_summand = -1;
    s->assumed = s->n == 0 && !s->first;
    if (s->n == 0)
        add_size(s, s->first ? 1 : MOST_ASSUMED);
    s->most = s->sizes[s->n - 1];
    s->least = o && o->range ? o->least : s->n > 1 || s->assumed ? 1 : s->most;
    s->step = o && o->step ? o->step : 1;
    s->open = !(o && o->range) && s->least != s->most;
    if (s->most == 0)
        snprintf(s->reason, sizeof s->reason, "a batch has rows");
}

/* One that is given a single number is that number, but for the batch. */
static void add_symbol(struct import *im, const struct onnx_dim *dim, bool first)
{
    const struct import_symbol *o = find_option(im, dim->symbol);
    if (im->n_symbols == IMPORT_SYMBOLS || (!first && o && o->n == 1 && !o->range))
        return;
    struct symbol s = {.symbol = dim->symbol, .first = first};
    spell(im, s.name, dim->symbol);
    take_sizes(im, &s);
    im->symbols[im->n_symbols++] = s;
}

/* A state keeps its shape; rows of the batch alone it may have more or fewer. */
static void check_states(struct import *im)
{
    const struct onnx_graph *g = &im->model->graph;
    for (size_t k = 0; k < im->options.n_states; k++)
        for (size_t i = 0; i < g->n_inputs; i++) {
            const struct onnx_value *in = &g->inputs[i];
            const bool state = strcmp(in->name, im->options.states[k].input) == 0;
            for (int d = 0; state && is_free(im, in) && d < in->rank; d++) {
                const int at = in->dims[d].value < 0
                                   ? import_find_symbol(im, &in->dims[d], d == 0)
                                   : -1;
                struct symbol *s = at < 0 ? NULL : &im->symbols[at];
                if (s && s->least != s->most && !(d == 0 && s->first))
                    snprintf(s->reason, sizeof s->reason,
                             "it is dim %d of the state '%s', which keeps its shape", d,
                             in->name);
            }
        }
}

/* How many of the values begin with a free dim of that name. */
static int count_begun(const struct onnx_value *all, size_t n, const char *symbol)
{
    int count = 0;
    for (size_t i = 0; i < n; i++)
        count += all[i].form == ONNX_TENSOR && all[i].rank > 0 &&
                 all[i].dims[0].value < 0 && strcmp(all[i].dims[0].symbol, symbol) == 0;
    return count;
}

/* The free dim that most inputs begin with, of as many the one that more outputs do; the
 * first of such as are alike. NULL: none does. */
static const struct onnx_dim *find_batch(const struct import *im)
{
    const struct onnx_graph *g = &im->model->graph;
    const struct onnx_dim *found = NULL, *other = NULL;
    int most = 0, of_outputs = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const struct onnx_dim *dim = g->inputs[i].dims;
        if (!is_free(im, &g->inputs[i]) || dim->value >= 0)
            continue;
        const int begun = count_begun(g->inputs, g->n_inputs, dim->symbol),
                  made = count_begun(g->outputs, g->n_outputs, dim->symbol);
        if (found && strcmp(found->symbol, dim->symbol) != 0)
            other = dim;
        if (begun < most || (begun == most && made <= of_outputs))
            continue;
        other = found && strcmp(found->symbol, dim->symbol) != 0 ? found : other;
        found = dim;
        most = begun;
        of_outputs = made;
    }
    if (other)
        log_line(STRATA_LOG_INFO,
                 "%s: '%s' is the batch, with which %d inputs and %d outputs begin; "
                 "others begin with '%s'",
                 im->model->path, found->symbol, most, of_outputs, other->symbol);
    return found;
}

void import_find_symbols(struct import *im)
{
    const struct onnx_graph *g = &im->model->graph;
    const struct onnx_dim *batch = find_batch(im);
    if (batch)
        add_symbol(im, batch, true);
    for (size_t i = 0; i < g->n_inputs; i++)
        for (int d = 0; is_free(im, &g->inputs[i]) && d < g->inputs[i].rank; d++) {
            const struct onnx_dim *dim = &g->inputs[i].dims[d];
            if (dim->value < 0 && *dim->symbol && import_find_symbol(im, dim, d == 0) < 0)
                add_symbol(im, dim, false);
        }
    check_states(im);
    symbols_find_sums(im);
}
