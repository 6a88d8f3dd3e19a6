/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of the layer test: shapes of a case, then every impl, row, combination of
 * formats, and variant that the impl's flags claim, each against the FP64 reference.
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

static void node_problem(struct trial *t, const char *otherwise)
{
    const char *rule = t->node.fault ? t->node.fault : otherwise;
    char text[STRATA_MESSAGE_SIZE];
    snprintf(text, sizeof text, "%s", t->node.err.message);
    trial_problem(t, rule, text);
}

/* ---- variants of one combination ----------------------------------------------- */

static int run_impl(struct trial *k, int row, const strata_epilogue *e)
{
    return harness_run(&k->node, k->impl, row, &k->formats, (const void *const *)k->v.in,
                       (const void *const *)k->v.weight, e, k->v.out);
}

/* From here on values cost more than all else: impls are asked before any are laid out,
 * and each goes through one math mode and all its tails at once, as in a sweep. */
#define LARGE (1 << 18) /* elements */

static bool is_large(const struct trial *k)
{
    const struct harness_node *n = &k->node;
    return n->in[0].count >= LARGE || n->out[0].count >= LARGE;
}

static void run_variant(struct trial *k, int row, const char *variant,
                        const strata_epilogue *e)
{
    static const strata_epilogue none = {0};
    struct harness_node *n = &k->node;
    k->variant = variant;
    n->no_pack = !k->target->plain && k->turn++ % 4 == 3;
    if (k->target->place)
        k->target->place(k, k->target->user);
    const bool refused = is_large(k) && harness_refuses(n, k->impl, row, &k->formats, e);
    int status = refused ? STRATA_EUNSUPPORTED : run_impl(k, row, e);
    if (n->no_pack && status == STRATA_EUNSUPPORTED && n->err.length > 0) {
        n->no_pack = false; /* an impl may need the extension, if it says so */
        status = run_impl(k, row, e);
    }
    k->result.vetoed += n->vetoed;
    if (k->tally && n->vetoed) {
        k->tally->vetoed++;
        snprintf(k->tally->veto, sizeof k->tally->veto, "%.199s", n->err.message);
    }
    if (n->vetoed)
        return;
    k->result.runs++;
    if (k->tally)
        k->tally->runs++;
    if (status != STRATA_OK)
        node_problem(k, "run-failed");
    else if (k->expects)
        trial_compare(k, e ? e : &none);
}

/* The kind that is next in turn among those the impl takes, with usual parameters. */
static void choose_activation(struct trial *k, strata_epilogue *e)
{
    static const struct {
        double alpha, beta;
    } usual[STRATA_ACTIVATION_COUNT] = {
        [STRATA_LEAKY_RELU] = {0.1},
        [STRATA_CLIP] = {-0.5, 1.5},
        [STRATA_ELU] = {0.75},
        [STRATA_SELU] = {1.6732632423543, 1.0507009873555},
        [STRATA_HARD_SIGMOID] = {0.2, 0.5},
        [STRATA_SWISH] = {1.25},
        [STRATA_CELU] = {0.75},
        [STRATA_SHRINK] = {0.5, 0.25},
        [STRATA_THRESHOLDED_RELU] = {0.5},
        [STRATA_SCALED_TANH] = {1.5, 0.75},
    };
    int32_t kind = k->turn % STRATA_ACTIVATION_COUNT;
    for (int i = 0; i < STRATA_ACTIVATION_COUNT; i++)
        if (!(k->impl->impl.activations >> kind & 1))
            kind = (kind + 1) % STRATA_ACTIVATION_COUNT;
    e->activation = kind;
    e->alpha = usual[kind].alpha;
    e->beta = usual[kind].beta;
}

/* Tails that the impl declares, if there are any of `flags`. */
static void run_tails(struct trial *k, int row, int32_t flags, const char *at)
{
    strata_tensor residual = k->node.out[0];
    residual.data = k->v.residual;
    strata_epilogue e = {
        .flags = flags, .scale = k->v.scale, .bias = k->v.bias, .residual = &residual};
    char name[64];
    if ((flags & k->impl->impl.epilogues) != flags || flags == 0 ||
        !number_is_real(k->node.out[0].dtype))
        return;
    choose_activation(k, &e);
    snprintf(name, sizeof name, "%sepilogue %d activation %d", at, flags, e.activation);
    run_variant(k, row, name, &e);
}

/* All declared tails at once, then each alone (only for given shapes: it is slow). */
static void run_epilogues(struct trial *k, int row)
{
    for (int32_t flags = 1; flags < 16 && !k->c->sweep && !is_large(k); flags *= 2)
        run_tails(k, row, flags, "");
    run_tails(k, row, k->impl->impl.epilogues, "");
}

static void lay_inside(struct harness_node *n, int32_t flags)
{
    n->pitched_in = flags & STRATA_PITCHED_IN ? PITCH_INSIDE : PITCH_NONE;
    n->pitched_out = flags & STRATA_PITCHED_OUT ? PITCH_INSIDE : PITCH_NONE;
    n->pitched_residual = flags & STRATA_PITCHED_RESIDUAL ? PITCH_WIDER : PITCH_NONE;
}

/* As a range of a larger tensor's channels: first what is read and written, then what is
 * added, alone and beside the others in turn. */
static void run_inside(struct trial *k, int row, int32_t flags)
{
    struct harness_node *n = &k->node;
    const int32_t tails = k->impl->impl.epilogues;
    if (flags & (STRATA_PITCHED_IN | STRATA_PITCHED_OUT)) {
        lay_inside(n, flags & ~STRATA_PITCHED_RESIDUAL);
        run_variant(k, row, "inside", NULL);
        if (!n->vetoed)
            run_tails(k, row, tails, "inside, ");
    }
    if (flags & STRATA_PITCHED_RESIDUAL && tails & STRATA_EPILOGUE_RESIDUAL) {
        const bool alone = k->turn % 2;
        lay_inside(n, alone ? STRATA_PITCHED_RESIDUAL : flags);
        run_tails(k, row, tails, alone ? "residual inside, " : "all inside, ");
    }
    lay_inside(n, 0);
}

static bool may_lie_in_place(const struct trial *k)
{
    return k->impl->impl.flags & STRATA_INPLACE_OK && k->node.node.n_in > 0 &&
           k->formats.in[0] == k->formats.out[0] &&
           k->node.in[0].count == k->node.out[0].count;
}

static void run_variants(struct trial *k, int row)
{
    struct harness_node *n = &k->node;
    int32_t flags = k->impl->impl.flags;
    const char *numbers = trial_numbers_name(k);
    run_variant(k, row, numbers ? numbers : "dense", NULL);
    if (n->vetoed || n->fault || numbers || n->out[0].count == 0)
        return;
    if (flags & (STRATA_STRIDED_IN | STRATA_STRIDED_OUT)) {
        n->pitched_in = flags & STRATA_STRIDED_IN ? PITCH_ALL : PITCH_NONE;
        n->pitched_out = flags & STRATA_STRIDED_OUT ? PITCH_ALL : PITCH_NONE;
        run_variant(k, row, "pitched", NULL);
    }
    lay_inside(n, 0);
    run_inside(k, row, flags);
    if (may_lie_in_place(k)) {
        n->in_place = true;
        run_variant(k, row, "in place", NULL);
        n->in_place = false;
    }
    run_epilogues(k, row);
}

/* The mode that a combination runs in beside the default one: `tf32` is tensor_op to all
 * but FP32, which takes both in turn. */
static int other_mode(struct trial *k)
{
    for (int i = 0; i < k->node.node.n_in; i++)
        if (k->node.in[i].rank > 0 &&
            format_at(__builtin_ctzll(k->formats.in[i]))->dtype == STRATA_FP32)
            return k->turn % 4 / 2 ? STRATA_MATH_TENSOR_OP : STRATA_MATH_TF32;
    return STRATA_MATH_TENSOR_OP;
}

/* On the host, math modes are one. Elsewhere given shapes run in two; a sweep and a quick
 * check run each in turn, and in the other one where accept refuses that. */
static void run_combination(struct trial *k, int row)
{
    strata_node *node = &k->node.node;
    const int other = other_mode(k);
    const bool begin = k->target->mirror && k->turn++ % 2;
    const bool one = k->c->sweep || is_large(k) || k->target->one_mode;
    math_tell(node, begin ? other : STRATA_MATH_DEFAULT);
    run_variants(k, row);
    if (k->target->mirror && (k->node.vetoed || !one)) {
        math_tell(node, begin ? STRATA_MATH_DEFAULT : other);
        run_variants(k, row);
    }
}

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
    const int modes[] = {STRATA_MATH_DEFAULT, other_mode(k)};
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
                run_combination(k, (int)r);
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
                if (combination_fits(k) && run_impl(k, (int)r, NULL) == STRATA_OK) {
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
        node_problem(k, "run-failed");
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
