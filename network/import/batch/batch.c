/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch of a model that leaves it free. A model is imported with one value of it and
 * with another; where the two are the same network, the symbol stays in it. No algebra is
 * needed: what depends on the symbol is what differs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "network/import/batch/memo.h"
#include "network/import/private.h"
#include "network/network.h"

#define UNNAMED "N" /* in [profile] */

/* ---- which one ---- */

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

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* As a key of [profile]: "x" stands between dims, and begins with a letter. */
static void spell(char out[CONFIG_MAX_KEY + 1], const char *symbol)
{
    const size_t n = strlen(symbol);
    bool usable = n > 0 && n <= CONFIG_MAX_KEY && is_letter(*symbol) &&
                  strcmp(symbol, "x") != 0 && strcmp(symbol, "X") != 0;
    snprintf(out, CONFIG_MAX_KEY + 1, "%s", usable ? symbol : UNNAMED);
    for (char *c = out; *c; c++)
        if (!is_letter(*c) && !(*c >= '0' && *c <= '9'))
            *c = '_';
}

/* Ascending, each once. */
static void add_value(struct import_batch *b, int64_t v)
{
    size_t at = 0;
    while (at < b->n && b->values[at] < v)
        at++;
    if (at < b->n && b->values[at] == v)
        return;
    memmove(&b->values[at + 1], &b->values[at], (b->n - at) * sizeof *b->values);
    b->values[at] = v;
    b->n++;
}

static void take_values(struct import *im)
{
    struct import_batch *b = &im->batch;
    const char *called = *b->symbol ? b->symbol : UNNAMED;
    for (size_t i = 0; i < im->options.n_symbols && b->n == 0; i++) {
        const struct import_symbol *s = &im->options.symbols[i];
        for (size_t k = 0; strcmp(s->name, called) == 0 && k < s->n; k++)
            add_value(b, s->values[k]);
    }
    if (b->n == 0)
        add_value(b, 1);
    if (b->values[0] == 0)
        snprintf(b->reason, sizeof b->reason, "a batch has rows");
}

void import_find_batch(struct import *im)
{
    const struct onnx_graph *g = &im->model->graph;
    struct import_batch *b = &im->batch;
    for (size_t i = 0; i < g->n_inputs && !b->symbol; i++)
        if (g->inputs[i].rank > 0 && g->inputs[i].dims[0].value < 0 &&
            is_free(im, &g->inputs[i]))
            b->symbol = g->inputs[i].dims[0].symbol;
    if (!b->symbol)
        return;
    spell(b->name, b->symbol);
    take_values(im);
    for (size_t i = 0; i < g->n_inputs && *b->symbol; i++)
        for (int d = 1; d < g->inputs[i].rank; d++)
            if (g->inputs[i].dims[d].value < 0 && is_free(im, &g->inputs[i]) &&
                strcmp(g->inputs[i].dims[d].symbol, b->symbol) == 0)
                snprintf(b->reason, sizeof b->reason, "it is dim %d of input '%s', too",
                         d, g->inputs[i].name);
}

/* ---- whether it stays ---- */

/* The network with that batch: its layers tell its shapes anew. */
static int settle(struct import *im, int64_t value, strata_error *err)
{
    struct graph *g = &im->g;
    int status = STRATA_OK;
    g->symbol_value = value;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->values[g->inputs[i]].batched)
            g->values[g->inputs[i]].dims[0] = value;
    for (size_t i = 0; i < im->n_sections && status == STRATA_OK; i++) {
        strata_error why = {0};
        section_free(im->sections[i]);
        status = section_infer(g, im->sections[i], im->registry, &why);
        if (status == STRATA_ENOMEM)
            error_no_memory(err, 0, "a model");
        else if (status != STRATA_OK)
            status = error_set(err, STRATA_EUNSUPPORTED,
                               "layer '%s' cannot have %" PRId64 ": %s",
                               im->sections[i]->name, value, why.message);
    }
    return status;
}

/* Whether a network that other values told is the model's for this one, too, as far as
 * that shows: the same branches, and the same outputs. */
static int check_outputs(const struct import *im, const struct import *plain,
                         strata_error *err)
{
    bool same = im->branches == plain->branches && im->g.n_outputs == plain->g.n_outputs;
    for (size_t i = 0; same && i < im->g.n_outputs; i++) {
        const struct value *a = &im->g.values[im->g.outputs[i]];
        const struct value *b = &plain->g.values[plain->g.outputs[i]];
        same = a->rank == b->rank && a->dtype == b->dtype;
        for (int d = 0; same && d < a->rank; d++)
            same = a->dims[d] == b->dims[d];
    }
    return same ? STRATA_OK
                : error_set(err, STRATA_EUNSUPPORTED,
                            "with %" PRId64 " of it the network is another",
                            plain->batch.value);
}

/* Whether rows do not know of each other, which several batches of an engine want: what
 * hangs on the batch has it as its first dim, and nowhere else. `were`: values as another
 * batch had them. */
static int check_rows(const struct import *im, const struct value *were, bool *carries,
                      strata_error *err)
{
    const struct graph *g = &im->g;
    for (size_t i = 0; i < g->n_inputs; i++)
        carries[g->inputs[i]] = g->values[g->inputs[i]].batched;
    for (size_t i = 0; i < im->n_sections; i++) {
        const struct section *s = im->sections[i];
        bool reads = false;
        int rank = 0;
        for (int k = 0; k < s->n_in; k++) {
            const struct value *v =
                network_reads_rows(s->layer, k) ? graph_value(g, s->in[k]) : NULL;
            reads |= v && carries[s->in[k]];
            rank = v && v->rank > rank ? v->rank : rank;
        }
        const char *why = reads ? network_mixes_rows(s->layer, s->params, rank) : NULL;
        reads &= network_gives_rows(s->layer);
        for (int k = 0; k < s->n_out && !why; k++) {
            const struct value *v = graph_value(g, s->out[k]), *was = were + s->out[k];
            if (!v)
                continue;
            carries[s->out[k]] = reads;
            bool same = v->rank == was->rank;
            for (int d = reads; same && d < v->rank; d++)
                same = v->dims[d] == was->dims[d];
            if (!same || (reads && (v->rank < 1 || v->dims[0] != g->symbol_value)))
                why = "what it gives hangs on the batch otherwise than by its first dim";
        }
        if (why)
            return error_set(err, STRATA_EUNSUPPORTED,
                             "several batches are not for layer '%s': %s", s->name, why);
    }
    return STRATA_OK;
}

/* The network settled for each of its batches. */
static int settle_all(struct import *im, strata_error *err)
{
    const struct import_batch *b = &im->batch;
    struct value *were = NULL;
    bool *carries = NULL;
    int status = settle(im, b->values[b->n - 1], err);
    if (status != STRATA_OK || b->n == 1)
        return status;
    were = zalloc(im->g.n_values, sizeof *were, "values", err);
    carries = zalloc(im->g.n_values, sizeof *carries, "values", err);
    if (were && carries)
        memcpy(were, im->g.values, im->g.n_values * sizeof *were);
    else
        status = STRATA_ENOMEM;
    for (size_t i = b->n - 1; status == STRATA_OK && i-- > 0;)
        status = settle(im, b->values[i], err);
    if (status == STRATA_OK)
        status = check_rows(im, were, carries, err);
    free(carries);
    free(were);
    return status;
}

/* A second import, and where its refusal is why the symbol goes, that says so. */
static int import_other(struct import **out, const struct import *start, int64_t value,
                        struct memo *memo, strata_error *err)
{
    const int status = import_at(out, start, value, memo, err);
    if (status == STRATA_EUNSUPPORTED)
        error_prefix(err, "with %" PRId64 " of it", value);
    return status;
}

/* Replace `plain`, the import with the first value, by one that says what the network is
 * for every value; it stays where there is none, which is EUNSUPPORTED. */
static int import_any(struct import **plain, const struct import *start,
                      struct memo *memo, strata_error *err)
{
    const struct import_batch *b = &start->batch;
    const int64_t value = b->n > 1 ? b->values[b->n - 1] : b->values[0] + 1;
    struct import *any = NULL, *third = NULL;
    int status = import_other(&any, start, value, memo, err);
    if (status == STRATA_OK)
        status = import_compare(any, *plain, err);
    if (any && status == STRATA_EUNSUPPORTED && b->values[0] == 1 && !any->all_refusals) {
        error_clear(err); /* dims of 1 come of much else, and mean more than others */
        status = import_other(&third, start, value + 1, memo, err);
        if (status == STRATA_OK)
            status = import_compare(any, third, err);
    }
    if (status == STRATA_OK)
        status = settle_all(any, err);
    if (status == STRATA_OK)
        status = check_outputs(any, *plain, err);
    if (status == STRATA_OK) {
        import_free(*plain);
        *plain = any;
        any = NULL;
    }
    import_free(any);
    import_free(third);
    return status;
}

static void fix(struct import *im, const char *reason)
{
    struct import_batch *b = &im->batch;
    if (!*b->reason)
        snprintf(b->reason, sizeof b->reason, "%.*s", (int)strcspn(reason, "\n"), reason);
    log_line(STRATA_LOG_WARNING, "%s: %s was fixed to %" PRId64 ": %s", im->model->path,
             *b->symbol ? b->symbol : "the first dim of inputs", b->value, b->reason);
}

int import_with_batch(struct import **out, const struct import *start, strata_error *err)
{
    struct memo *memo = memo_make(err);
    strata_error why = {0};
    *out = NULL;
    if (!memo)
        return STRATA_ENOMEM;
    int status = import_at(out, start, start->batch.values[0], memo, err);
    if (status == STRATA_OK && !*start->batch.reason)
        status = import_any(out, start, memo, &why);
    if (status == STRATA_EUNSUPPORTED && why.status == status)
        status = STRATA_OK;
    else if (status != STRATA_OK && why.status == status)
        *err = why;
    if (status == STRATA_OK && (*start->batch.reason || why.status != STRATA_OK))
        fix(*out, why.message);
    if (*out)
        (*out)->memo = memo;
    else
        memo_free(memo);
    return status;
}
