/* SPDX-License-Identifier: Apache-2.0
 *
 * How kernels that reduce cut their work, and where on the device its parts lie.
 */
#ifndef PLUGINS_COMMON_REDUCE_CUT_CUH
#define PLUGINS_COMMON_REDUCE_CUT_CUH

#include <stdint.h>

#include "plugins/common/reduce/plan.h"

struct reduce_cut {
    const void *x;
    void *part; /* tallies, [piece][output]; where there is more than one piece */
    reduce_plan plan;
    int64_t outputs, rows; /* kept*width; run*gone */
    int32_t pieces;
    int32_t unit;                /* rows that are not cut */
    int64_t each, more;          /* units of a piece, and pieces that have one more */
    int32_t across, down, spans; /* of columns */
};

static __device__ inline int64_t place_of(const reduce_axis *axis, int32_t n, int64_t i,
                                          bool out)
{
    int64_t at = 0;
#pragma unroll 1 /* few axes, and the division is long */
    for (int32_t d = 0; d < n; d++) {
        int64_t next = 0, c = i;
        if (d + 1 < n) {
            next = i / axis[d].n; /* of 32 bits where it can be, by the compiler */
            c = i - next * axis[d].n;
        }
        at += c * (out ? axis[d].out : axis[d].in);
        i = next;
    }
    return at;
}

/* Where output o lies. */
static __device__ inline int64_t output_at(const reduce_cut &cut, int64_t o)
{
    const reduce_plan &p = cut.plan;
    if (p.width == 1)
        return place_of(p.keep, p.n_kept, o, true);
    if (p.n_kept == 0)
        return o * p.step;
    const int64_t kept = o / p.width;
    return place_of(p.keep, p.n_kept, kept, true) + (o - kept * p.width) * p.step;
}

/* The first row of a piece, of which the first `more` have a unit more than `each`. */
static __device__ inline int64_t piece_start(const reduce_cut &cut, int64_t piece)
{
    return (piece * cut.each + (piece < cut.more ? piece : cut.more)) * cut.unit;
}

/* Where U packs begin, `step` rows apart; N divides a run, or columns are N wide. */
template <int U>
static __device__ inline void reduce_places(int64_t (&at)[U], const reduce_cut &cut,
                                            int64_t row, int64_t step)
{
    const reduce_plan &p = cut.plan;
    if (p.n_gone == 0) {
        const int64_t first = row * p.width, next = step * p.width;
#pragma unroll
        for (int u = 0; u < U; u++)
            at[u] = first + u * next;
        return;
    }
#pragma unroll 1 /* as it is long; the places move up, so that they stay in registers */
    for (int n = 0; n < U; n++, row += step) {
        const int64_t gone = row / p.run;
#pragma unroll
        for (int u = 0; u + 1 < U; u++)
            at[u] = at[u + 1];
        at[U - 1] =
            place_of(p.go, p.n_gone, gone, false) + (row - gone * p.run) * p.width;
    }
}

#endif /* PLUGINS_COMMON_REDUCE_CUT_CUH */
