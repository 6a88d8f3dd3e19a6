/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise: a program of element-wise operations in one pass, each element of the output
 * from those of the inputs. What the planner makes of chains of Unary, ElementWise,
 * Scale, Activation, Cast, Compare and Select, and what a network may write itself. Float
 * formats alike; truths linear. FP32 between the operations, one rounding at the end.
 */
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"
#include "plugins/common/pointwise/exact.h"
#include "plugins/common/pointwise/program.h"

static int pointwise_layer_shape(const strata_node *n)
{
    struct program p;
    int status = program_parse(&p, n);
    for (int32_t i = 0; i < p.n_steps && status == STRATA_OK; i++)
        if (program_is_of_bytes(p.step[i].op))
            status = STRATA_FAIL(n, STRATA_EINVAL,
                                 "program: instruction %d is QuantizedPointwise's; write "
                                 "a layer of that type",
                                 (int)i);
    for (int32_t i = 0; i < n->n_in && status == STRATA_OK; i++) {
        const int32_t dtype = n->in[i].dtype;
        if (dtype != STRATA_FP32 && dtype != STRATA_FP16 && dtype != STRATA_BF16 &&
            dtype != STRATA_BOOL8)
            status = STRATA_FAIL(n, STRATA_EINVAL,
                                 "input %d is neither of FP32, FP16 or BF16 nor bool; "
                                 "put a Cast before it",
                                 (int)i);
    }
    if (status != STRATA_OK)
        return status;
    n->out[0].dtype = p.dtype;
    n->out[0].exact = p.exact;
    return pointwise_shape(n);
}

/* As the layers claim of which a program is made, so that their sum and a pass differ by
 * what they move. */
static double operations_of(int32_t op)
{
    if (op >= POINTWISE_ACTIVATION) {
        const int32_t kind = op - POINTWISE_ACTIVATION;
        return kind <= STRATA_CLIP || kind == STRATA_THRESHOLDED_RELU ||
                       kind == STRATA_SHRINK
                   ? 1
                   : 10;
    }
    if (op == POINTWISE_AFFINE)
        return 2;
    return op == STRATA_UNARY_EXP || op == STRATA_UNARY_LOG ||
                   (op >= STRATA_UNARY_SIN && op <= STRATA_UNARY_ERF)
               ? 8
               : 1;
}

static double pointwise_layer_flops(const strata_node *n)
{
    struct program p;
    double each = 0;
    if (program_parse(&p, n) != STRATA_OK)
        return 0;
    for (int32_t i = 0; i < p.n_steps; i++)
        each += operations_of(p.step[i].op);
    return each * (double)n->out[0].count;
}

/* Truths come with floats of any dtype; floats are of one. */
static int pointwise_layer_accept(const strata_node *n)
{
    int32_t dtype = n->out[0].dtype == STRATA_BOOL8 ? -1 : n->out[0].dtype;
    for (int32_t i = 0; i < n->n_in; i++) {
        const strata_tensor *t = &n->in[i];
        if (t->dtype == STRATA_BOOL8)
            continue;
        if (dtype >= 0 && t->dtype != dtype)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "floats are of several dtypes");
        dtype = t->dtype;
    }
    return pointwise_accept(n);
}

static int pointwise_layer_setup(const strata_node *n, void *state)
{
    return program_parse(state, n);
}

static int pointwise_layer_run(const strata_run *r)
{
    const struct program *p = r->state;
    struct pointwise_pass pass = {.values = &pointwise_float,
                                  .out = &r->out[0],
                                  .n_in = r->n_in,
                                  .n_steps = p->n_steps};
    for (int32_t i = 0; i < r->n_in; i++)
        pass.in[i] = &r->in[i];
    for (int32_t i = 0; i < p->n_steps; i++) {
        const struct program_step *s = &p->step[i];
        pass.step[i] = (struct pointwise_step){
            s->op, s->to, s->a, s->b, s->c, {.alpha = s->alpha, .beta = s->beta}};
    }
    pass.step[p->n_steps - 1].to = POINTWISE_RESULT;
    pointwise_pass_run(&pass);
    return STRATA_OK;
}

/* ---- the definition ---------------------------------------------------------------- */

static int pointwise_layer_reference(const strata_node *n, const void *const *in,
                                     const void *const *weight, void *const *out)
{
    struct program p;
    const strata_tensor *y = &n->out[0];
    int64_t index[STRATA_MAX_RANK];
    int status = program_parse(&p, n);
    (void)weight;
    for (int64_t e = 0; status == STRATA_OK && e < dense_count(y); e++) {
        double row[PROGRAM_INPUTS + PROGRAM_KEPT] = {0}, last = 0;
        dense_index(y, e, index);
        for (int32_t i = 0; i < n->n_in; i++) {
            const strata_tensor *x = &n->in[i];
            const int64_t at = dense_broadcast(x, index + (y->rank - x->rank));
            row[i] = dense_is_real(x->dtype) ? ((const double *)in[i])[at]
                                             : (double)((const int64_t *)in[i])[at];
        }
        for (int32_t i = 0; i < p.n_steps; i++) {
            const struct program_step *s = &p.step[i];
            const struct pointwise_constants k = {.alpha = s->alpha, .beta = s->beta};
            last = exact_double(s->op, &k, row[s->a], row[s->b], row[s->c]);
            row[s->to] = last;
        }
        if (y->dtype == STRATA_BOOL8)
            ((int64_t *)out[0])[e] = last != 0;
        else
            ((double *)out[0])[e] = last;
    }
    return status;
}

static const void *pointwise_layer_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     pointwise_layer_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "program",
     .type = STRATA_STRING,
     .offset = offsetof(strata_pointwise, program),
     .def_text = "scale x0", /* y = x */
     .doc = "instructions: \"product x0 x1, clip r0 0 6\""},
};

#define MIXED(format)                                                                    \
    {                                                                                    \
        {(format), (format), (format), (format)}, {(format)},                            \
            {(format), (format), (format), (format)},                                    \
        {                                                                                \
            0                                                                            \
        }                                                                                \
    }
static const strata_row rows[] = {
    {{POINTWISE_FLOATS, STRATA_SAME}, {STRATA_SAME}},
    MIXED(STRATA_F32_NCHW | STRATA_BOOL_NCHW),
    MIXED(STRATA_F16_NCHW | STRATA_BOOL_NCHW),
    MIXED(STRATA_BF16_NCHW | STRATA_BOOL_NCHW),
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN |
              STRATA_PITCHED_OUT,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.2,
     .bandwidth = 0.65,
     .state_size = sizeof(struct program),
     .accept = pointwise_layer_accept,
     .setup = pointwise_layer_setup,
     .run = pointwise_layer_run},
};

static const strata_layer pointwise = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Pointwise",
    .doc = "A program of element-wise operations in one pass",
    .min_in = 1,
    .max_in = PROGRAM_INPUTS,
    .n_out = 1,
    .params_size = sizeof(strata_pointwise),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = pointwise_layer_shape,
    .flops = pointwise_layer_flops,
    .extension = pointwise_layer_extension,
};

static const strata_layer *const layers[] = {&pointwise};
STRATA_MODULE("core", "1.0.0", "Pointwise", layers)
