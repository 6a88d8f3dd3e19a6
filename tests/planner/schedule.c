/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps and memory of executions: what is alive together lies apart, in every order.
 */
#include "tests/broken/build.h"
#include "tests/planner/planning.h"

TestSuite(schedule, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

static void plan_with(struct planning *s, const char *ini, const char *const *set,
                      size_t n_set)
{
    const char *path = spill_text("net.ini", ini);
    cr_assert_eq(planning_open(s, path, set, n_set), STRATA_OK, "%s", s->err.message);
}

static void plan(struct planning *s, const char *ini)
{
    plan_with(s, ini, NULL, 0);
}

/* Two long branches, the second of which shrinks first; a concatenation of both. */
static const char branches[] =
    "[network]\nformat = 1\noutputs = last\n[weights w]\nrandom = 1\n"
    "[input x]\nshape = 1 x 16 x 16 x 16\n"
    "[layer a1]\ntype = Convolution\nfilters = 64\nkernel = 3x3\npad = 1\nweights = w\n"
    "[layer b1]\ntype = Convolution\nfilters = 64\nkernel = 3x3\npad = 1\nweights = w\n"
    "inputs = x\n"
    "[layer a2]\ntype = Convolution\nfilters = 16\nkernel = 1x1\nweights = w\n"
    "inputs = a1\n"
    "[layer b2]\ntype = Convolution\nfilters = 16\nkernel = 1x1\nweights = w\n"
    "inputs = b1\n"
    "[layer cat]\ntype = Concatenation\ninputs = a2, b2\n"
    "[layer last]\ntype = Pooling\nkind = average\nglobal = yes\n";

/* Whether two values are alive at one step and overlap in the arena. */
static bool collide(const struct execution_value *a, const struct execution_value *b)
{
    return a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool in_arena(const struct execution_value *v)
{
    return v->alias < 0 && v->binding < 0 && v->last >= 0;
}

Test(schedule, values_alive_together_lie_apart)
{
    struct planning s;
    plan(&s, branches);
    const struct execution *x = s.execution;
    for (size_t i = 0; i < x->n_values; i++)
        for (size_t j = 0; j < i; j++)
            cr_expect_not(in_arena(&x->values[i]) && in_arena(&x->values[j]) &&
                              collide(&x->values[i], &x->values[j]),
                          "values %zu and %zu", i, j);
    planning_close(&s);
}

Test(schedule, parts_of_a_concatenation_lie_inside_it)
{
    /* Planes, in which a part lies in one piece, whatever the CPU's vectors are. */
    static const char *const planes[] = {"build.formats=fp32:nchw", "build.merge=no"};
    struct planning s;
    size_t parts = 0;
    plan_with(&s, branches, planes, ARRAY_LENGTH(planes));
    const struct execution *x = s.execution;
    for (size_t i = 0; i < x->n_values; i++) {
        const struct execution_value *v = &x->values[i];
        if (v->alias < 0 || v->in_place)
            continue;
        const struct execution_value *whole = &x->values[v->alias];
        cr_expect_leq(v->begin + v->bytes, whole->bytes);
        parts += whole->bytes > v->bytes;
    }
    cr_expect_eq(parts, 2);
    planning_close(&s);
}

Test(schedule, every_step_comes_after_what_it_reads)
{
    static const char *const names[] = {"network", "depth", "heavy", "live"};
    struct planning s;
    plan(&s, branches);
    const struct execution *x = s.execution;
    int *order = malloc(x->n_steps * sizeof *order);
    int *place = malloc(x->n_steps * sizeof *place);
    cr_assert(order && place);
    for (int which = 0; which < ORDER_COUNT; which++) {
        memset(place, -1, x->n_steps * sizeof *place);
        cr_assert_eq(execution_order(x, which, order, &s.err), STRATA_OK);
        for (size_t i = 0; i < x->n_steps; i++) {
            cr_expect_lt(place[order[i]], 0, "%s: a step twice", names[which]);
            place[order[i]] = (int)i;
        }
        for (size_t r = 0; r < x->n_steps; r++)
            for (size_t w = 0; w < x->n_steps; w++)
                for (int k = 0, v; (v = execution_reads(x, &x->steps[r], k)) >= 0; k++)
                    for (int l = 0, u; (u = execution_writes(x, &x->steps[w], l)) >= 0;
                         l++)
                        cr_expect(u != v || place[w] < place[r], "%s: step %zu",
                                  names[which], r);
    }
    free(order);
    free(place);
    planning_close(&s);
}

/* In the network's order both wide tensors are alive at once; depth first only one. */
Test(schedule, an_order_with_less_memory_is_found)
{
    struct planning s;
    plan(&s, branches);
    const int64_t wide = 64 * 16 * 16 * 4;
    cr_expect_lt(s.execution->arena_bytes, 2 * wide);
    cr_expect_geq(s.execution->arena_bytes, s.execution->arena_bound);
    cr_expect_geq(s.execution->arena_bound, wide);
    planning_close(&s);
}

/* ---- inputs of which FP16 is all that is read ----------------------------------------
 */

#define IMAGES                                                                           \
    "[weights w]\nrandom = 1\n[input x]\nshape = 8 x 3 x 112 x 112\n"                    \
    "[layer conv]\ntype = Convolution\nfilters = 64\nkernel = 7x7\nstride = 2\n"         \
    "pad = 3\nweights = w\n"

static bool is_rounded(const char *ini, const char *precision)
{
    const char *const set[] = {"build.costs=analytic", "build.math=tensor_op", precision};
    struct planning s;
    cr_assert_eq(planning_load(&s, spill_text("net.ini", ini), NULL, set, 3), STRATA_OK,
                 "%s", s.err.message);
    if (!planning_has_cuda(&s)) {
        planning_close(&s);
        cr_skip_test("no impls for CUDA were built");
    }
    s.device = planning_cuda();
    cr_assert_eq(planning_make(&s, NULL), STRATA_OK, "%s", s.err.message);
    const bool rounded = s.execution->bindings[0].rounded;
    planning_close(&s);
    return rounded;
}

Test(schedule, images_that_all_readers_round_are_known)
{
    static const char alone[] = "[network]\nformat = 1\noutputs = conv\n" IMAGES;
    cr_expect(is_rounded(alone, "build.precision=fp16"));
    cr_expect_not(is_rounded(alone, "build.precision=fp32"));
}

#define READS(name, type, inputs)                                                        \
    "[layer " name "]\ntype = " type "\ninputs = " inputs "\n"

/* Halves rounds what it reads, Mix does not. */
static const struct readers {
    const char *what, *outputs, *layers;
    bool rounded;
} readers[] = {
    {"one that rounds", "y", READS("y", "Halves", "x"), true},
    {"one that does not", "y", READS("y", "Mix", "x"), false},
    {"two that round", "y, z", READS("y", "Halves", "x") READS("z", "Halves", "x"), true},
    {"one of each", "y, z", READS("y", "Halves", "x") READS("z", "Mix", "x"), false},
    {"by another name, rounded", "y",
     READS("r", "Identity", "x") READS("y", "Halves", "r"), true},
    {"by another name, not rounded", "y, z",
     READS("r", "Identity", "x") READS("y", "Halves", "x") READS("z", "Mix", "r"), false},
    {"given back", "y, same", READS("y", "Halves", "x") READS("same", "Identity", "x"),
     false},
    {"in a concatenation", "y",
     READS("c", "Concatenation", "x, x") READS("y", "Halves", "c"), false},
    {"added", "y", READS("h", "Halves", "x") READS("y", "ElementWise", "h, x"), false},
};

Test(schedule, an_input_is_rounded_where_all_its_readers_round)
{
    char module[512]; /* in_scratch has four paths at a time */
    snprintf(module, sizeof module, "%s",
             build("later.so", "modules/later_layers.c", SHARED " -DDEVICE=STRATA_HOST"));
    const char *files[] = {module};
    const strata_registry_options from = {
        .struct_size = sizeof from, .files = files, .n_files = 1};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        const char *const set[] = {"build.costs=analytic"};
        struct planning s;
        char ini[1024];
        snprintf(ini, sizeof ini,
                 "[network]\nformat = 1\noutputs = %s\n[input x]\nshape = 2x3x4x4\n%s",
                 readers[i].outputs, readers[i].layers);
        cr_assert_eq(planning_load(&s, spill_text("net.ini", ini), &from, set, 1),
                     STRATA_OK, "%s: %s", readers[i].what, s.err.message);
        cr_assert_eq(planning_make(&s, NULL), STRATA_OK, "%s: %s", readers[i].what,
                     s.err.message);
        cr_expect_eq(s.execution->bindings[0].rounded, readers[i].rounded, "%s",
                     readers[i].what);
        planning_close(&s);
    }
}
