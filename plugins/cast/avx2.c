/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast's loops for processors with AVX2 and FMA.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,fma,f16c")
#endif
#include "plugins/cast/loops.h"

#ifdef CAST_WIDE
cast_fn *cast_of_avx2(int to, int from)
{
    return cast_of(to, from);
}
#endif
