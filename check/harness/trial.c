/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of the layer test: shapes of a case, then every impl, row and combination of
 * formats, each against the FP64 reference.
 */
#include "check/harness/trial.h"

#include "registry/math/mode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t sweep_images[] = {1, 3};
static const int64_t sweep_sizes[] = {1, 5, 7, 14};
/* Ended by 0. */
static const int64_t sweep_channels[] = {1, 2, 3, 7, 8, 9, 16, 17, 33, 0};
static const int64_t wide_channels[] = {1,  2,  3,  4,  7,  8,  9,  15, 16,
                                        17, 31, 32, 33, 63, 64, 65, 0};
static const int64_t quick_channels[] = {3, 8, 17, 0};

/* Whether a tensor may lie in a format, which keeps its values exactly. */
static bool fits(const strata_tensor *t, uint64_t mask, const void *values)
{
    if (!harness_fits(t, mask))
        return false;
    const int32_t dtype = format_at(__builtin_ctzll(mask))->dtype;
    for (int64_t e = 0; values && e < t->count; e++)
        if (!number_keeps(dtype, values, e))
            return false;
    return true;
}

static bool combination_fits(const struct trial *k)
{
    const struct harness_node *n = &k->node;
    for (int i = 0; i < n->node.n_in; i++)
        if (n->in[i].rank > 0 && !fits(&n->in[i], k->formats.in[i], k->v.in[i]))
            return false;
    for (int i = 0; i < n->node.n_out; i++)
        if (!fits(&n->out[i], k->formats.out[i], NULL))
            return false;
    return true;
}

/* A visitor has one run to try, in the mode that accept takes. */
static void visit(struct trial *k, int row)
{
    const int modes[] = {STRATA_MATH_DEFAULT, trial_other_mode(k)};
    const int n = k->target->mirror ? 2 : 1, failures = k->result.failures;
    const int64_t runs = k->result.runs;
    for (int i = 0; i < n && k->result.runs == runs && k->result.failures == failures;
         i++) {
        math_tell(&k->node.node, modes[i]);
        k->target->visit(k, row);
    }
    math_tell(&k->node.node, STRATA_MATH_DEFAULT);
}

static bool wanted(const struct trial *k, const struct registry_impl *impl)
{
    const struct harness_target *t = k->target;
    return impl->impl.device == k->node.node.device &&
           (impl->impl.min_sm <= k->node.node.sm || impl->impl.min_sm == 0) &&
           (impl->impl.max_sm >= k->node.node.sm || impl->impl.max_sm == 0) &&
           harness_suits(&k->node, &impl->impl) &&
           (!t->impl || strcmp(t->impl, impl->impl.name) == 0) &&
           (!t->wants || t->wants(impl, t->user));
}

static bool chosen(const struct trial *k, int row)
{
    const struct harness_target *t = k->target;
    char text[256];
    if (!combination_fits(k) || (t->takes && !t->takes(k, row, t->user)))
        return false;
    if (!t->formats)
        return true;
    trial_formats(k, text, sizeof text);
    return strcmp(text, t->formats) == 0;
}

/* Rows that give many ports a choice are sampled: other combinations each time. */
#define MOST_COMBINATIONS 128

static bool passed_over(struct trial *k)
{
    const struct harness_node *n = &k->node;
    const bool larger = n->in[0].count >= 1 << 13 || n->out[0].count >= 1 << 13;
    return larger && k->target->every && k->met++ % k->target->every;
}

static void visit_rows(struct trial *k)
{
    for (uint32_t r = 0; r < k->impl->impl.rows.n; r++) {
        const struct registry_row *row = &k->impl->rows[r];
        const int64_t all = harness_combinations(row, &k->node);
        const int64_t step = k->target->formats ? 1 : all / MOST_COMBINATIONS + 1;
        if (k->target->steady)
            k->turn = (int)((k->seed + k->target->turn) % 64);
        bool first = true;
        for (int64_t at = step > 1 ? k->turn++ % step : 0;
             !k->done && harness_combination(&k->formats, row, &k->node, at);
             at += step) {
            if (!chosen(k, (int)r) || (!first && passed_over(k)))
                continue;
            first = false;
            if (k->target->steady)
                k->turn = (int)((k->seed + k->target->turn + r + (uint64_t)at) % 64);
            if (k->target->visit)
                visit(k, (int)r);
            else
                trial_combination(k, (int)r);
        }
    }
}

static void run_impls(struct trial *k)
{
    const struct registry_layer *layer = k->node.layer;
    for (size_t i = 0; i < layer->n_impls && !k->done; i++) {
        k->impl = &layer->impls[i];
        k->tally = k->target->tally ? &k->target->tally[i] : NULL;
        if (wanted(k, k->impl))
            visit_rows(k);
    }
    k->impl = NULL;
    k->tally = NULL;
}

/* The device that instances are of. */
static void aim(struct trial *k)
{
    struct mirror *m = k->target->mirror;
    k->node.mirror = m;
    if (!m)
        return;
    k->node.node.device = m->handle->properties.kind;
    k->node.node.sm = m->handle->properties.sm;
}

int trial_session(struct trial *t, struct session *s, int row)
{
    return session_make(s, &t->node, t->impl, row, &t->formats,
                        (const void *const *)t->v.in, (const void *const *)t->v.weight,
                        NULL);
}

/* Without a reference, the first host impl that runs says what the others must give. */
static void expect_agreement(struct trial *k)
{
    const struct registry_layer *layer = k->node.layer;
    k->agreement = true;
    k->node.plain = true;
    for (size_t i = 0; i < layer->n_impls && !k->expects; i++) {
        k->impl = &layer->impls[i];
        if (!harness_suits(&k->node, &k->impl->impl))
            continue;
        for (uint32_t r = 0; r < k->impl->impl.rows.n && !k->expects; r++)
            for (int64_t at = 0;
                 k->impl->impl.device == STRATA_HOST && !k->expects &&
                 harness_combination(&k->formats, &k->impl->rows[r], &k->node, at);
                 at++)
                if (combination_fits(k) && trial_run(k, (int)r, NULL) == STRATA_OK) {
                    for (int o = 0; o < k->node.node.n_out; o++)
                        memcpy(k->v.expected[o], k->v.out[o],
                               (size_t)k->node.out[o].count * VALUE_SIZE);
                    k->expects = true;
                    k->agreed = k->impl;
                    k->agreed_row = (int)r;
                    k->agreed_formats = k->formats;
                }
    }
    k->impl = NULL;
    k->node.plain = k->target->plain;
    error_clear(&k->node.err);
}

/* Fill v.expected; false after a problem. */
static bool expect_values(struct trial *k)
{
    const char *rule;
    int status = trial_define(k, &rule);
    k->expects = status == STRATA_OK;
    if (status == STRATA_ENOTFOUND)
        expect_agreement(k);
    else if (status != STRATA_OK)
        trial_problem(k, rule, k->node.err.message);
    return status == STRATA_OK || status == STRATA_ENOTFOUND;
}

/* Inputs that are not plain, when v.expected is there for the plain ones. */
static bool expect_numbers(struct trial *k)
{
    if (k->c->numbers == NUMBERS_NAN && k->expects)
        trial_follow(k);
    if (k->c->numbers == NUMBERS_LARGE && k->expects && !k->agreement)
        trial_shake(k);
    if (k->c->numbers < NUMBERS_NAN || k->c->numbers > NUMBERS_NEGATIVE_INFINITE)
        return true;
    k->expects = false;
    trial_place_specials(k);
    return expect_values(k);
}

/* ---- shapes of a case ---------------------------------------------------------- */

static void check_refusal(struct trial *k)
{
    k->result.refused++;
    if (k->node.err.length == 0)
        trial_problem(k, "message-missing", "refused without a message");
    else if (!k->c->refused && !k->c->sweep && !k->c->may_refuse && !k->as)
        trial_node_problem(k, "run-failed");
}

static void check_shape(struct trial *k, const struct harness_shape *in, int n_in)
{
    struct harness_node *n = &k->node;
    trial_attrs(k->attrs, sizeof k->attrs, k->c->attrs, in, n_in);
    memset(&k->formats, 0, sizeof k->formats);
    k->variant = trial_numbers_name(k);
    k->expects = k->agreement = false;
    k->agreed = NULL;
    for (int i = 0; i < HARNESS_INPUTS; i++)
        k->in_dtype[i] = k->c->in_dtype[i] ? k->c->in_dtype[i] : k->as;
    n->in_dtype = k->in_dtype;
    n->weight_dtype = k->c->weight_dtype;
    n->mirror = NULL;
    n->phase = k->target->phase;
    n->plain = k->target->plain;
    int status =
        harness_open(n, k->node.layer, k->attrs, in, n_in, k->c->weight, k->c->absent);
    if (k->target->place)
        k->target->place(k, k->target->user);
    if (status != STRATA_OK)
        check_refusal(k);
    else if (k->c->refused && !k->as)
        trial_problem(k, "run-failed", "accepted although it should be refused");
    else if (!trial_is_moderate(k))
        k->result.refused++;
    else if (!trial_make_values(k))
        trial_problem(k, "run-failed", "out of memory");
    else if (expect_values(k) && expect_numbers(k)) {
        aim(k);
        run_impls(k);
    }
    trial_free_values(&k->v);
    harness_close(n);
}

static void check_sweep(struct trial *k)
{
    struct harness_shape in[HARNESS_INPUTS];
    const int64_t *channels = k->target->wide    ? wide_channels
                              : k->target->quick ? quick_channels
                                                 : sweep_channels;
    int n_in = k->c->n_in > 0 ? k->c->n_in : 1;
    const unsigned every = k->target->every ? k->target->every : 1;
    for (size_t n = 0; n < ARRAY_LENGTH(sweep_images); n++)
        for (size_t c = 0; channels[c] > 0; c++)
            for (size_t s = 0; s < ARRAY_LENGTH(sweep_sizes); s++) {
                if ((n + c + s) % every) /* yet each of all three */
                    continue;
                for (int i = 0; i < n_in; i++) {
                    in[i] = (struct harness_shape){k->c->sweep, {0}};
                    in[i].dims[0] = sweep_images[n];
                    in[i].dims[1] = channels[c];
                    for (int d = 2; d < k->c->sweep;
                         d++) /* rows are not as long as high */
                        in[i].dims[d] =
                            sweep_sizes[(s + (size_t)d) % ARRAY_LENGTH(sweep_sizes)];
                }
                check_shape(k, in, n_in);
            }
}

static void check_shapes(struct trial *k)
{
    const int n_in = k->c->n_in;
    if (k->c->sweep)
        check_sweep(k);
    else
        check_shape(k, k->c->in, n_in < 0 ? 0 : n_in > 0 ? n_in : 1);
}

/* ---- all ------------------------------------------------------------------------ */

struct harness_result harness_check_on(const struct harness_target *target,
                                       const struct registry_layer *layer,
                                       const struct layer_case *c, uint64_t seed,
                                       harness_report report)
{
    struct trial *k = calloc(1, sizeof *k);
    struct harness_result result = {.failures = 1};
    if (!k)
        return result;
    k->c = c;
    k->target = target;
    k->report = report;
    k->seed = seed;
    k->turn = (int)(seed % 64);
    k->node.layer = layer;
    const uint64_t types = trial_further_types(k);
    check_shapes(k);
    for (k->as = 1; k->as < STRATA_DTYPE_COUNT; k->as++)
        if (types >> k->as & 1)
            check_shapes(k);
    if (k->result.runs == 0 && !c->refused && !c->may_refuse && !target->impl &&
        !target->takes && !target->visit && !target->part)
        trial_problem(k, "untested", "no impl ran on any shape of this case");
    result = k->result;
    free(k);
    return result;
}
