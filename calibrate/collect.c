/* SPDX-License-Identifier: Apache-2.0
 *
 * What a network's tensors hold.
 */
#include "calibrate/collect.h"

#include <math.h>
#include <stdlib.h>

#include "calibrate/watch.h"

int collection_open(struct collection *c, const struct scheme *s, strata_error *err)
{
    const size_t n = s->net->n_tensors;
    *c = (struct collection){.scheme = s};
    c->tensors = zalloc(n, sizeof *c->tensors, "histograms", err);
    int status = c->tensors ? STRATA_OK : STRATA_ENOMEM;
    for (size_t t = 0; t < n && status == STRATA_OK; t++) {
        if (!s->tensors[t])
            continue;
        c->tensors[t] = zalloc(1, sizeof **c->tensors, "a histogram", err);
        if (c->tensors[t])
            histogram_open(c->tensors[t]);
        else
            status = STRATA_ENOMEM;
    }
    if (status != STRATA_OK)
        collection_free(c);
    return status;
}

void collection_free(struct collection *c)
{
    for (size_t t = 0; c->tensors && t < c->scheme->net->n_tensors; t++)
        free(c->tensors[t]);
    free(c->tensors);
    *c = (struct collection){.scheme = NULL};
}

static int add_tensor(void *of, strata_context *context, int value,
                      const struct execution_node *n, strata_error *err)
{
    const struct collection *c = of;
    struct histogram *h = c->tensors[context->engine->execution->values[value].tensor];
    float *values = NULL;
    int64_t count = 0;
    (void)n;
    if (!h)
        return STRATA_OK;
    int status = watch_floats(&values, &count, context, value, err);
    if (status == STRATA_OK)
        histogram_add(h, values, count);
    free(values);
    return status;
}

int collection_run(struct collection *c, strata_context *context,
                   const struct samples *samples, size_t n, strata_error *err)
{
    const struct watcher w = {.of = c, .made = add_tensor};
    int status = STRATA_OK;
    for (; c->done < n && status == STRATA_OK; c->done += status == STRATA_OK) {
        status = samples_step(samples, "collecting", c->done, n, err);
        if (status == STRATA_OK)
            status = samples->load(samples->of, context, c->done, err);
        if (status == STRATA_OK)
            status = watch_run(context, &w, err);
    }
    return status;
}

/* ---- ranges --------------------------------------------------------------------------
 */

/* Of all tensors that have the first one's scale. */
static int merge_shared(struct histogram **out, const struct collection *c, int first,
                        strata_error *err)
{
    const struct scheme *s = c->scheme;
    *out = zalloc(1, sizeof **out, "a histogram", err);
    if (!*out)
        return STRATA_ENOMEM;
    histogram_open(*out);
    for (size_t t = (size_t)first; t < s->net->n_tensors; t++)
        if (s->tensors[t] && s->shares[t] == first)
            histogram_merge(*out, c->tensors[t]);
    return STRATA_OK;
}

static int put_shared(struct ranges *out, const struct collection *c, int first,
                      double low, double high, strata_error *err)
{
    const struct scheme *s = c->scheme;
    int status = STRATA_OK;
    for (size_t t = (size_t)first; t < s->net->n_tensors && status == STRATA_OK; t++)
        if (s->tensors[t] && s->shares[t] == first)
            status = ranges_put(out, s->net->tensors[t].name, low, high,
                                c->tensors[t]->seen, err);
    return status;
}

static int nothing_seen(const struct histogram *h, const char *name, strata_error *err)
{
    if (h->odd)
        return error_set(err, STRATA_EINVAL,
                         "tensor '%s': none of its %lld values is finite; see with "
                         "`strata run` what the network makes of the data",
                         name, (long long)h->odd);
    return error_set(err, STRATA_EINVAL, "tensor '%s' held no value; add data", name);
}

int collection_ranges(struct ranges *out, const struct collection *c,
                      const struct range_method *method, const struct quant_type *type,
                      double share, strata_error *err)
{
    const struct scheme *s = c->scheme;
    int status = STRATA_OK;
    for (size_t t = 0; t < s->net->n_tensors && status == STRATA_OK; t++) {
        struct histogram *h = NULL;
        if (!s->tensors[t] || s->shares[t] != (int)t) /* the first's is theirs */
            continue;
        status = merge_shared(&h, c, (int)t, err);
        if (status == STRATA_OK && h->seen == 0)
            status = nothing_seen(h, s->net->tensors[t].name, err);
        if (status == STRATA_OK) {
            const double bound = method->bound(h, type, share);
            status = put_shared(out, c, (int)t, fmax(h->low, -bound),
                                fmin(h->high, bound), err);
        }
        free(h);
    }
    return status;
}

int collection_saturated(double **out, const struct collection *c,
                         const struct ranges *ranges, strata_error *err)
{
    const strata_network *net = c->scheme->net;
    *out = zalloc(net->n_tensors, sizeof **out, "a table", err);
    if (!*out)
        return STRATA_ENOMEM;
    for (size_t t = 0; t < net->n_tensors; t++) {
        const struct range *r =
            c->tensors[t] ? ranges_find(ranges, net->tensors[t].name) : NULL;
        if (r)
            (*out)[t] =
                histogram_beyond(c->tensors[t], fmax(fabs(r->low), fabs(r->high)));
    }
    return STRATA_OK;
}

int ranges_share(struct ranges *r, const struct scheme *s, strata_error *err)
{
    const strata_network *net = s->net;
    double *low = zalloc(net->n_tensors, sizeof *low, "ranges", err);
    double *high = zalloc(net->n_tensors, sizeof *high, "ranges", err);
    int status = low && high ? STRATA_OK : STRATA_ENOMEM;
    for (size_t t = 0; t < net->n_tensors && status == STRATA_OK; t++) {
        const struct range *e = ranges_find(r, net->tensors[t].name);
        if (!s->tensors[t])
            continue;
        if (!e) {
            status = error_set(err, STRATA_ENOTFOUND,
                               "no range of tensor '%s', which is to be int8; collect "
                               "the ranges of this network, or add the line",
                               net->tensors[t].name);
            break;
        }
        low[s->shares[t]] = fmin(low[s->shares[t]], e->low);
        high[s->shares[t]] = fmax(high[s->shares[t]], e->high);
    }
    for (size_t t = 0; t < net->n_tensors && status == STRATA_OK; t++)
        if (s->tensors[t]) {
            const struct range *e = ranges_find(r, net->tensors[t].name);
            status = ranges_put(r, e->tensor, low[s->shares[t]], high[s->shares[t]],
                                e->seen, err);
        }
    free(low);
    free(high);
    return status;
}
