/* SPDX-License-Identifier: Apache-2.0
 * A module whose fields -D can break; good as it stands.
 */
#include <strata/plugin.h>

#ifndef NS
#define NS "org.example"
#endif
#ifndef NAMES
#define NAMES "Probe"
#endif
#ifndef NAME
#define NAME "Probe"
#endif
#ifndef LAYER_VERSION
#define LAYER_VERSION 1
#endif
#ifndef LAYER_SIZE
#define LAYER_SIZE sizeof(strata_layer)
#endif
#ifndef OFFSET
#define OFFSET 8
#endif
#ifndef SECOND_ID
#define SECOND_ID 2
#endif
#ifndef IN
#define IN STRATA_F32_NCHW
#endif
#ifndef BUILD
#define BUILD 0 /* different values make different builds */
#endif

static int run(const strata_run *r)
{
    return r->n_in == 1 ? STRATA_OK : STRATA_EINVAL + BUILD;
}

static const strata_attr attrs[] = {
    {.name = "first", .type = STRATA_F64, .offset = 0},
    {.name = "second", .type = STRATA_F64, .offset = OFFSET},
};
static const strata_row rows[] = {{{IN}, {STRATA_F32_NCHW}}};
static const strata_impl impls[] = {
    {.id = 1, .name = "one", .rows = STRATA_ARRAY(rows), .run = run},
    {.id = SECOND_ID, .name = "two", .rows = STRATA_ARRAY(rows), .run = run},
};
static const strata_layer layer = {
    .struct_size = LAYER_SIZE,
    .version = LAYER_VERSION,
    .name = NAME,
    .doc = "probe",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = 16,
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE(NS, "1.0.0", NAMES, layers)
