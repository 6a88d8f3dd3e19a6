/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers quantising hurts.
 */
#include "calibrate/sensitivity.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

int experiment_answers(struct answers *out, const struct experiment *x, const bool *keep,
                       const char *what, strata_error *err)
{
    struct quantising q = *x->quantising;
    struct scheme scheme;
    struct probe t;
    int status = scheme_make(&scheme, q.scheme->net, q.scheme->type, keep,
                             q.scheme->weights_only, err);
    if (status != STRATA_OK)
        return status;
    q.scheme = &scheme;
    status = probe_open_quantised(&t, x->handle, &q, err);
    if (status == STRATA_OK)
        status = answers_run(out, x->floats, &t, x->samples, x->labels, what, err);
    probe_close(&t);
    scheme_free(&scheme);
    return status;
}

int experiment_alone(struct answers *out, const struct experiment *x, strata_error *err)
{
    const struct scheme *s = x->quantising->scheme;
    const size_t n = s->net->n_layers;
    bool *keep = zalloc(n, sizeof *keep, "layers", err);
    int status = keep ? STRATA_OK : STRATA_ENOMEM;
    size_t done = 0;
    char what[128];
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        if (!s->computes[i])
            continue;
        for (size_t k = 0; k < n; k++)
            keep[k] = k != i;
        snprintf(what, sizeof what, "layer %zu of %zu alone", ++done, s->n_layers);
        status = experiment_answers(&out[i], x, keep, what, err);
    }
    free(keep);
    return status;
}

/* ---- a budget ------------------------------------------------------------------------
 */

struct rank {
    size_t layer;
    double noise;
};

/* The noisiest first; of equal ones the first of the network. */
static int compare_ranks(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->noise != y->noise)
        return x->noise > y->noise ? -1 : 1;
    return x->layer < y->layer ? -1 : 1;
}

static struct rank *rank_layers(const struct scheme *s, const struct answers *alone,
                                strata_error *err)
{
    struct rank *ranks = zalloc(s->n_layers, sizeof *ranks, "layers", err);
    size_t n = 0;
    for (size_t i = 0; i < s->net->n_layers && ranks; i++)
        if (s->computes[i])
            ranks[n++] = (struct rank){i, alone[i].out.noise};
    if (ranks)
        qsort(ranks, n, sizeof *ranks, compare_ranks);
    return ranks;
}

/* Try it with the first n of the ranks kept, beside those that the scheme leaves out. */
static int try_keeping(bool *keep, struct answers *out, const struct experiment *x,
                       const struct rank *ranks, size_t n, strata_error *err)
{
    const struct scheme *s = x->quantising->scheme;
    char what[128];
    for (size_t i = 0; i < s->net->n_layers; i++)
        keep[i] = !s->computes[i];
    for (size_t k = 0; k < n; k++)
        keep[ranks[k].layer] = true;
    snprintf(what, sizeof what, "%zu of %zu layers kept", n, s->n_layers);
    return experiment_answers(out, x, keep, what, err);
}

static bool holds(const struct answers *a, size_t lost)
{
    return a->right + lost >= a->right_floats;
}

int experiment_choose(bool *keep, struct answers *answers, const struct experiment *x,
                      const struct answers *alone, size_t lost, strata_error *err)
{
    const struct scheme *s = x->quantising->scheme;
    struct rank *ranks = rank_layers(s, alone, err);
    size_t fails = 0, does = s->n_layers; /* without any quantised nothing is lost */
    int status = ranks ? try_keeping(keep, answers, x, ranks, 0, err) : STRATA_ENOMEM;
    if (status != STRATA_OK || holds(answers, lost))
        goto done;
    while (does - fails > 1 && status == STRATA_OK) {
        const size_t middle = fails + (does - fails) / 2;
        status = try_keeping(keep, answers, x, ranks, middle, err);
        if (holds(answers, lost))
            does = middle;
        else
            fails = middle;
    }
    if (status == STRATA_OK)
        status = try_keeping(keep, answers, x, ranks, does, err);
done:
    free(ranks);
    return status;
}
