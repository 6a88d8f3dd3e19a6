/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer whose impls take known times, for tests of what is measured. The slow impl
 * comes first and claims to be the better one.
 */
#define _POSIX_C_SOURCE 200809L
#include <strata/plugin.h>

#include <string.h>
#include <time.h>

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int spin(const strata_run *r, double us)
{
    double end = now_us() + us;
    memcpy(r->out[0].data, r->in[0].data, (size_t)r->in[0].size * sizeof(float));
    while (now_us() < end)
        ;
    return STRATA_OK;
}

static int slow_run(const strata_run *r)
{
    return spin(r, 9000);
}

static int fast_run(const strata_run *r)
{
    return spin(r, 150);
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}},
                                  {{STRATA_F32_NHWC}, {STRATA_F32_NHWC}}};
static const strata_impl impls[] = {
    {.id = 1,
     .name = "slow",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.9,
     .run = slow_run},
    {.id = 2,
     .name = "fast",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.1,
     .run = fast_run},
};
static const strata_layer wait_layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Wait",
    .doc = "The identity, after a while.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(impls),
};
static const strata_layer *const layers[] = {&wait_layer};
STRATA_MODULE("timed", "1.0.0", "Wait", layers)
