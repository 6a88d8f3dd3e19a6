/* SPDX-License-Identifier: Apache-2.0
 *
 * What it costs to have a tensor in another label: a matrix for all tensors of one shape
 * that may lie alike.
 */
#include "planner/planner.h"

#include <string.h>

#include "planner/solver/buckets.h"

/* What it takes to have a tensor inside its concatenation. */
struct homing {
    enum {
        HOME_NEVER, /* none reads it */
        HOME_FREE,  /* its producer writes it there */
        HOME_COPY   /* its memory is another's: an input's, an output's, an alias */
    } kind;
    uint64_t pitched, cut; /* formats in which it lies apart, as in planner_model */
};

/* Floats are rounded, and so are integers that are bound to a float tensor. */
static bool may_convert(const struct planner *planner, int tensor, int from, int to)
{
    const struct network_tensor *t = &planner->network->tensors[tensor];
    const int a = format_at(from)->dtype, b = format_at(to)->dtype;
    return dtype_exact(a, b) ||
           (dtype_is_free(b) && (dtype_is_free(a) || dtype_is_free(t->dtype)));
}

static struct homing homing_of(const struct planner *planner,
                               const struct planner_model *m, int tensor)
{
    int producer = planner->network->tensors[tensor].producer;
    struct homing h = {HOME_FREE, m->pitched[tensor], m->cut[tensor]};
    if (m->home[tensor] < 0)
        h.kind = HOME_NEVER;
    else if (producer < 0 || planner->is_output[tensor])
        h.kind = HOME_COPY;
    for (size_t i = producer < 0 ? 0 : m->first[producer];
         h.kind == HOME_FREE && i < m->first[producer + 1]; i++)
        if (m->candidates[i].kind == CANDIDATE_ALIAS)
            h.kind = HOME_COPY;
    return h;
}

static bool is_clean(const struct planner *planner, int tensor, struct plan_label from,
                     struct plan_label to)
{
    const struct network_tensor *t = &planner->network->tensors[tensor];
    return from.pad == STRATA_PAD_ZERO || to.pad == STRATA_PAD_ANY ||
           !format_has_pads(*format_at(to.format), t->rank > 1 ? t->dims[1] : 1);
}

/* Of copying, converting maybe, a tensor into another place. */
static int64_t copy_cost(const struct planner *planner, int tensor,
                         struct plan_label from, struct plan_label to)
{
    strata_desc a, b;
    if (planner_desc(&a, planner->network, tensor, from.format, NULL) != STRATA_OK ||
        planner_desc(&b, planner->network, tensor, to.format, NULL) != STRATA_OK ||
        !may_convert(planner, tensor, from.format, to.format))
        return PLAN_INFINITE;
    return cost_of_reformat(strata_desc_bytes(&a), strata_desc_bytes(&b),
                            &planner->device.properties);
}

/* Whether a stage is of tensors that exist as such. */
static bool is_whole(int stage)
{
    return stage == PLAN_PLAIN || stage == PLAN_HOME || stage == PLAN_CUT;
}

/* Between stages there is nothing, but what the label says of itself, and copies where a
 * tensor lies apart. */
static int64_t stage_cost(const struct planner *planner, int tensor, struct homing homing,
                          struct plan_label from, struct plan_label to)
{
    if (to.stage == PLAN_NONE && from.stage != PLAN_NONE)
        return 0;
    if (!is_whole(from.stage) ||
        (from.stage == PLAN_CUT && !(homing.cut >> from.format & 1)))
        return PLAN_INFINITE;
    const bool same = from.format == to.format;
    if (to.stage == PLAN_ANYWHERE)
        return same && is_clean(planner, tensor, from, to) ? 0 : PLAN_INFINITE;
    const bool zero = from.pad == STRATA_PAD_ZERO && to.pad == STRATA_PAD_ZERO;
    const bool leaves = from.stage != PLAN_PLAIN && to.stage == PLAN_PLAIN;
    const bool enters = to.stage == PLAN_HOME && homing.kind != HOME_NEVER;
    if (!zero || (!leaves && !enters))
        return PLAN_INFINITE;
    const int apart = enters ? to.format : from.format;
    if (homing.pitched >> apart & 1 || from.stage == PLAN_CUT)
        return copy_cost(planner, tensor, from, to);
    if (!same)
        return PLAN_INFINITE;
    return leaves || homing.kind == HOME_FREE ? 0
                                              : copy_cost(planner, tensor, from, to);
}

static int64_t conversion_cost(const struct planner *planner, int tensor,
                               struct plan_label from, struct plan_label to)
{
    strata_desc a, b;
    if (planner_desc(&a, planner->network, tensor, from.format, NULL) != STRATA_OK ||
        planner_desc(&b, planner->network, tensor, to.format, NULL) != STRATA_OK)
        return PLAN_INFINITE;
    if (!may_convert(planner, tensor, from.format, to.format))
        return PLAN_INFINITE;
    if (a.dtype == b.dtype && strata_desc_equal(&a, &b) &&
        is_clean(planner, tensor, from, to))
        return 0;
    return cost_of_reformat(strata_desc_bytes(&a), strata_desc_bytes(&b),
                            &planner->device.properties);
}

static int64_t label_cost(const struct planner *planner, int tensor, struct homing homing,
                          struct plan_label from, struct plan_label to)
{
    if (from.format == to.format && from.pad == to.pad && from.stage == to.stage)
        return 0;
    return from.stage == PLAN_PLAIN && to.stage == PLAN_PLAIN
               ? conversion_cost(planner, tensor, from, to)
               : stage_cost(planner, tensor, homing, from, to);
}

static bool same_shape(const struct network_tensor *a, const struct network_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static uint64_t hash_shape(const struct network_tensor *t, struct homing homing)
{
    uint64_t hash = buckets_mix((uint64_t)homing.kind, (uint64_t)t->dtype);
    hash = buckets_mix(buckets_mix(hash, homing.pitched), homing.cut);
    for (int d = 0; d < t->rank; d++)
        hash = buckets_mix(hash, (uint64_t)t->dims[d]);
    return hash;
}

/* A matrix for the tensors of one shape and homing, of which this is one. */
static int64_t *make_matrix(const struct planner *planner, struct planner_model *m,
                            int tensor, struct homing homing, strata_error *err)
{
    const struct plan_problem *p = &m->problem;
    size_t n = (size_t)p->n_labels;
    int64_t *matrix = zalloc(n * n, sizeof *matrix, "conversion costs", err);
    if (!matrix)
        return NULL;
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            matrix[a * n + b] =
                label_cost(planner, tensor, homing, p->labels[a], p->labels[b]);
    return m->matrices[m->n_matrices++] = matrix;
}

/* matrices: of the tensors that have one of their own, by what they are. */
static int make_conversion(const struct planner *planner, struct planner_model *m,
                           struct buckets *matrices, size_t i, strata_error *err)
{
    struct plan_tensor *all = m->problem.tensors;
    const struct network_tensor *tensors = planner->network->tensors;
    int tensor = m->tensor_of[i];
    const struct homing homing = homing_of(planner, m, tensor);
    uint64_t hash = hash_shape(&tensors[tensor], homing);
    for (int j = buckets_find(matrices, hash); j >= 0; j = matrices->before[j]) {
        const struct homing other = homing_of(planner, m, m->tensor_of[j]);
        if (same_shape(&tensors[tensor], &tensors[m->tensor_of[j]]) &&
            homing.kind == other.kind && homing.pitched == other.pitched &&
            homing.cut == other.cut) {
            all[i].conversion = all[j].conversion;
            return STRATA_OK;
        }
    }
    buckets_add(matrices, hash, (int)i);
    all[i].conversion = make_matrix(planner, m, tensor, homing, err);
    return all[i].conversion ? STRATA_OK : STRATA_ENOMEM;
}

int planner_make_conversions(const struct planner *planner, struct planner_model *m,
                            strata_error *err)
{
    struct buckets matrices = {0};
    int status = buckets_open(&matrices, m->problem.n_tensors, "conversion costs", err);
    for (size_t i = 0; i < m->problem.n_tensors && status == STRATA_OK; i++)
        status = make_conversion(planner, m, &matrices, i, err);
    buckets_close(&matrices);
    return status;
}
