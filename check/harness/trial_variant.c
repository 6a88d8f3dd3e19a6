/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of one combination of formats: dense, pitched, inside larger tensors, in
 * place, with tails, in the math modes there are.
 */
#include "check/harness/trial.h"

#include "registry/math/mode.h"

#include <stdio.h>
#include <string.h>

int trial_run(struct trial *k, int row, const strata_epilogue *e)
{
    return harness_run(&k->node, k->impl, row, &k->formats, (const void *const *)k->v.in,
                       (const void *const *)k->v.weight, e, k->v.out);
}

#define LARGE (1 << 18) /* elements */

bool trial_is_large(const struct trial *k)
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
    const bool refused =
        trial_is_large(k) && harness_refuses(n, k->impl, row, &k->formats, e);
    int status = refused ? STRATA_EUNSUPPORTED : trial_run(k, row, e);
    if (n->no_pack && status == STRATA_EUNSUPPORTED && n->err.length > 0) {
        n->no_pack = false; /* an impl may need the extension, if it says so */
        status = trial_run(k, row, e);
    }
    k->result.vetoed += n->vetoed;
    if (k->tally && n->vetoed) {
        k->tally->vetoed++;
        k->tally->lacking += n->lacking;
        snprintf(k->tally->veto, sizeof k->tally->veto, "%.199s", n->err.message);
    }
    if (n->vetoed)
        return;
    k->result.runs++;
    if (k->tally)
        k->tally->runs++;
    if (status != STRATA_OK)
        trial_node_problem(k, "run-failed");
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
    for (int32_t flags = 1; flags < 16 && !k->c->sweep && !trial_is_large(k); flags *= 2)
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
int trial_other_mode(struct trial *k)
{
    for (int i = 0; i < k->node.node.n_in; i++)
        if (k->node.in[i].rank > 0 &&
            format_at(__builtin_ctzll(k->formats.in[i]))->dtype == STRATA_FP32)
            return k->turn % 4 / 2 ? STRATA_MATH_TENSOR_OP : STRATA_MATH_TF32;
    return STRATA_MATH_TENSOR_OP;
}

/* On the host, math modes are one. Elsewhere given shapes run in two; a sweep and a quick
 * check run each in turn, and in the other one where accept refuses that. */
void trial_combination(struct trial *k, int row)
{
    strata_node *node = &k->node.node;
    const int other = trial_other_mode(k);
    const bool begin = k->target->mirror && k->turn++ % 2;
    const bool one = k->c->sweep || trial_is_large(k) || k->target->one_mode;
    math_tell(node, begin ? other : STRATA_MATH_DEFAULT);
    run_variants(k, row);
    if (k->target->mirror && (k->node.vetoed || !one)) {
        math_tell(node, begin ? STRATA_MATH_DEFAULT : other);
        run_variants(k, row);
    }
}
