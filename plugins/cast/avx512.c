/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast's loops for processors with AVX-512 (F, BW, DQ, VL).
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")
#endif
#include "plugins/cast/loops.h"

#ifdef CAST_WIDE
cast_fn *cast_of_avx512(int to, int from)
{
    return cast_of(to, from);
}
#endif
