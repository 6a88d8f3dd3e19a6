/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time of a run goes: each step between two events, beside its floors.
 */
#ifndef BENCH_NET_LAYERS_H
#define BENCH_NET_LAYERS_H

#include <strata/strata.h>

/* A table on stderr, the slowest first. The context has run; it runs some times more. */
int net_layers_print(const strata_engine *engine, strata_context *context,
                     strata_error *err);

#endif /* BENCH_NET_LAYERS_H */
