/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of plugins/common/cast.h, compiled for wider vectors too.
 */
#ifndef PLUGINS_CAST_LOOPS_H
#define PLUGINS_CAST_LOOPS_H

#include "plugins/common/cast.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CAST_WIDE 1
/* For processors with AVX2 and FMA, and with AVX-512 besides. */
cast_fn *cast_of_avx2(int to, int from);
cast_fn *cast_of_avx512(int to, int from);
#endif

#endif /* PLUGINS_CAST_LOOPS_H */
