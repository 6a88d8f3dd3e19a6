/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers whose time depends on what ran before, by a clock that their runs push, for
 * tests of trials in the network. Second's cheaper impl is stalled behind a First, as no
 * price of it says.
 */
#include <strata/plugin.h>

#include <string.h>

#define SEEN __attribute__((visibility("default")))

SEEN double neighbour_us, neighbour_stall_us; /* the clock; of the cheaper impl */
SEEN int neighbour_states;                    /* that are set up */
static int after_first;

static int pass(const strata_run *r, double us)
{
    memcpy(r->out[0].data, r->in[0].data, (size_t)r->in[0].size * sizeof(float));
    neighbour_us += us;
    return STRATA_OK;
}

static int first_run(const strata_run *r)
{
    after_first = 1;
    return pass(r, 100);
}

static int other_first_run(const strata_run *r)
{
    after_first = 1;
    return pass(r, 101);
}

static int stalled_run(const strata_run *r)
{
    const double stall = after_first ? neighbour_stall_us : 0;
    after_first = 0;
    return pass(r, 100 + stall);
}

static int steady_run(const strata_run *r)
{
    after_first = 0;
    return pass(r, 101);
}

static int setup(const strata_node *n, void *state)
{
    (void)n;
    *(int *)state = 1;
    neighbour_states++;
    return STRATA_OK;
}

static void teardown(void *state)
{
    neighbour_states -= *(int *)state;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};

#define IMPL(number, what, how)                                                          \
    {                                                                                    \
        .id = number, .name = what, .rows = STRATA_ARRAY(rows),                          \
        .state_size = sizeof(int), .setup = setup, .teardown = teardown, .run = how      \
    }

static const strata_impl firsts[] = {IMPL(1, "first", first_run),
                                     IMPL(2, "other", other_first_run)};
static const strata_impl seconds[] = {IMPL(1, "stalled", stalled_run),
                                      IMPL(2, "steady", steady_run)};
static const strata_layer first = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "First",
    .doc = "The identity, before which a Second is stalled.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(firsts),
};
static const strata_layer second = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Second",
    .doc = "The identity.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(seconds),
};
static const strata_layer *const layers[] = {&first, &second};
STRATA_MODULE("neighbour", "1.0.0", "First,Second", layers)
