/* SPDX-License-Identifier: Apache-2.0
 * A module that extends a layer of another, of a version and size given by -D.
 */
#include <strata/plugin.h>

#ifndef LAYER_VERSION
#define LAYER_VERSION 1
#endif
#ifndef PARAMS_SIZE
#define PARAMS_SIZE 16
#endif
#ifndef IMPL
#define IMPL "fast"
#endif
#ifndef RUN
#define RUN run
#endif

static int run(const strata_run *r)
{
    return r->n_in == 1 ? STRATA_OK : STRATA_EINVAL;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1, .name = IMPL, .rows = STRATA_ARRAY(rows), .run = RUN},
};
static const strata_extends probe = {
    .struct_size = sizeof(strata_extends),
    .version = LAYER_VERSION,
    .layer = "org.example::Probe",
    .params_size = PARAMS_SIZE,
    .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const all[] = {&probe};
int (*const keep)(const strata_run *) = run;
STRATA_MODULE_EXTENDS("org.faster", "1.0.0", "+org.example::Probe", all)
