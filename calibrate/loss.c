/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses of layers.
 */
#include "calibrate/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/watch.h"
#include "ini/names.h"

double noise_db(const struct noise *n)
{
    if (n->noise <= 0)
        return INFINITY;
    return n->signal > 0 ? 10 * log10(n->signal / n->noise) : -INFINITY;
}

int losses_open(struct losses *l, const struct scheme *s, strata_error *err)
{
    *l = (struct losses){.scheme = s};
    l->layers = zalloc(s->net->n_layers, sizeof *l->layers, "losses", err);
    int status = l->layers ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < s->net->n_layers && status == STRATA_OK; i++) {
        struct layer_loss *e = &l->layers[i];
        if (!s->computes[i])
            continue;
        e->channels = scheme_channels(s->net, &s->net->layers[i], s->computes[i]);
        e->off = zalloc((size_t)e->channels, sizeof *e->off, "losses", err);
        e->count = zalloc((size_t)e->channels, sizeof *e->count, "losses", err);
        status = e->off && e->count ? STRATA_OK : STRATA_ENOMEM;
    }
    if (status != STRATA_OK)
        losses_free(l);
    return status;
}

void losses_free(struct losses *l)
{
    for (size_t i = 0; l->layers && i < l->scheme->net->n_layers; i++) {
        free(l->layers[i].off);
        free(l->layers[i].count);
    }
    free(l->layers);
    *l = (struct losses){.scheme = NULL};
}

/* ---- two runs, the second fed by the first -------------------------------------------
 */

/* Tensors of the floats that the other run needs. */
struct pairing {
    struct losses *losses;
    float **kept;      /* of each tensor of the network of floats */
    int *of_quantised; /* of each tensor of the quantised one: the tensor of its name */
    int *made_by;      /* of each tensor of the network of floats: the quantised layer */
};

static bool is_needed(const struct pairing *p, int tensor)
{
    return p->losses->scheme->tensors[tensor] || p->made_by[tensor] >= 0;
}

static int keep_tensor(void *of, strata_context *c, int value,
                       const struct execution_node *n, strata_error *err)
{
    const struct pairing *p = of;
    const int tensor = c->engine->execution->values[value].tensor;
    int64_t count;
    (void)n;
    return is_needed(p, tensor) ? watch_floats(&p->kept[tensor], &count, c, value, err)
                                : STRATA_OK;
}

static int twin(const struct pairing *p, const strata_context *c, int value)
{
    return p->of_quantised[c->engine->execution->values[value].tensor];
}

/* What becomes int8 is the floats' tensor. */
static int feed_tensor(void *of, strata_context *c, int value,
                       const struct execution_node *n, strata_error *err)
{
    const struct pairing *p = of;
    const int tensor = twin(p, c, value);
    const bool quantizes = strcmp(n->layer->type->full_name, "core::Quantize@1") == 0;
    return quantizes && tensor >= 0 && p->kept[tensor]
               ? watch_set_floats(c, value, p->kept[tensor], err)
               : STRATA_OK;
}

/* What is not finite, as of a mask or of a sample that holds NaN, says nothing of the
 * rounding, and would be all that a mean says. */
static void add_loss(struct layer_loss *e, const float *floats, const float *quantised,
                     const struct network_tensor *t, int dim)
{
    int64_t inner = 1, outer = 1;
    for (int d = 0; d < dim; d++)
        outer *= t->dims[d];
    for (int d = dim + 1; d < t->rank; d++)
        inner *= t->dims[d];
    for (int64_t o = 0, i = 0; o < outer; o++)
        for (int64_t k = 0; k < e->channels; k++)
            for (int64_t x = 0; x < inner; x++, i++) {
                const double y = (double)floats[i], off = y - (double)quantised[i];
                if (!isfinite(off))
                    continue;
                e->out.signal += y * y;
                e->out.noise += off * off;
                e->off[k] += off;
                e->count[k]++;
            }
}

static int hold_against(void *of, strata_context *c, int value,
                        const struct execution_node *n, strata_error *err)
{
    const struct pairing *p = of;
    const struct scheme *s = p->losses->scheme;
    const int tensor = twin(p, c, value);
    const int layer = tensor >= 0 ? p->made_by[tensor] : -1;
    float *found = NULL;
    int64_t count = 0;
    (void)n;
    if (layer < 0 || !p->kept[tensor])
        return STRATA_OK;
    int status = watch_floats(&found, &count, c, value, err);
    if (status == STRATA_OK)
        add_loss(&p->losses->layers[layer], p->kept[tensor], found,
                 &s->net->tensors[tensor],
                 scheme_channel_dim(s->net, &s->net->layers[layer], s->computes[layer]));
    free(found);
    return status;
}

static void drop_kept(const struct pairing *p)
{
    for (size_t t = 0; p->kept && t < p->losses->scheme->net->n_tensors; t++) {
        free(p->kept[t]);
        p->kept[t] = NULL;
    }
}

static int pair_tensors(struct pairing *p, const strata_network *quantised,
                        strata_error *err)
{
    const struct scheme *s = p->losses->scheme;
    struct names names = {.n = 0};
    p->kept = zalloc(s->net->n_tensors, sizeof *p->kept, "losses", err);
    p->made_by = zalloc(s->net->n_tensors, sizeof *p->made_by, "losses", err);
    p->of_quantised =
        zalloc(quantised->n_tensors, sizeof *p->of_quantised, "losses", err);
    int status = p->kept && p->made_by && p->of_quantised ? STRATA_OK : STRATA_ENOMEM;
    for (size_t t = 0; t < s->net->n_tensors && status == STRATA_OK; t++) {
        const int producer = s->net->tensors[t].producer;
        p->made_by[t] = producer >= 0 && s->computes[producer] ? producer : -1;
        status = names_put(&names, s->net->tensors[t].name, (int)t, err);
    }
    for (size_t t = 0; t < quantised->n_tensors && status == STRATA_OK; t++)
        p->of_quantised[t] = names_get(&names, quantised->tensors[t].name);
    names_free(&names);
    return status;
}

static int run_pair(struct pairing *p, struct probe *floats, struct probe *quantised,
                    const struct samples *samples, size_t i, strata_error *err)
{
    const struct watcher keep = {.of = p, .made = keep_tensor};
    const struct watcher hold = {.of = p, .made = hold_against, .read = feed_tensor};
    int status = samples->load(samples->of, floats->context, i, err);
    if (status == STRATA_OK)
        status = watch_run(floats->context, &keep, err);
    if (status == STRATA_OK)
        status = samples->load(samples->of, quantised->context, i, err);
    if (status == STRATA_OK)
        status = watch_run(quantised->context, &hold, err);
    drop_kept(p);
    return status;
}

/* The mean's part of the squares: sum^2/count of each channel. */
static void mend(struct layer_loss *e)
{
    e->mended = e->out;
    for (int64_t k = 0; k < e->channels; k++)
        if (e->count[k])
            e->mended.noise -= e->off[k] * e->off[k] / (double)e->count[k];
    e->mended.noise = fmax(e->mended.noise, 0);
}

int losses_run(struct losses *l, struct probe *floats, struct probe *quantised,
               const struct samples *samples, size_t n, strata_error *err)
{
    struct pairing p = {.losses = l};
    int status = pair_tensors(&p, quantised->network, err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        status = samples_step(samples, "losses of layers", i, n, err);
        if (status == STRATA_OK)
            status = run_pair(&p, floats, quantised, samples, i, err);
    }
    for (size_t i = 0; i < l->scheme->net->n_layers; i++)
        mend(&l->layers[i]);
    drop_kept(&p);
    free(p.kept);
    free(p.made_by);
    free(p.of_quantised);
    return status;
}

int losses_corrections(const double ***out, struct losses *l, strata_error *err)
{
    const size_t n = l->scheme->net->n_layers;
    *out = zalloc(n, sizeof **out, "corrections", err);
    if (!*out)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct layer_loss *e = &l->layers[i];
        bool any = false;
        for (int64_t k = 0; k < e->channels; k++) {
            any = any || e->count[k];
            if (e->count[k])
                e->off[k] /= (double)e->count[k];
            e->count[k] = e->count[k] != 0;
        }
        (*out)[i] = any ? e->off : NULL;
    }
    return STRATA_OK;
}
