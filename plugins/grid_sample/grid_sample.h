/* SPDX-License-Identifier: Apache-2.0
 *
 * What GridSample's impls share: the elements of a dim that a coordinate is made of.
 * FP64, so that both devices and the reference choose the same ones.
 */
#ifndef PLUGINS_GRID_SAMPLE_GRID_SAMPLE_H
#define PLUGINS_GRID_SAMPLE_GRID_SAMPLE_H

#include <math.h>

#include <strata/layers.h>

#include "plugins/common/index.h"

#define GRID_TAPS 4 /* along a dim, at most */
#define GRID_DIMS 3

/* Neighbours along one dim; -1: a zero beyond the border. */
struct grid_taps {
    int64_t index[GRID_TAPS];
    double weight[GRID_TAPS];
};

INDEX_INLINE int grid_count(int32_t mode)
{
    return mode == STRATA_GRID_NEAREST ? 1 : mode == STRATA_GRID_LINEAR ? 2 : 4;
}

INDEX_INLINE double grid_between(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Mirrored at both borders until it is between them. */
INDEX_INLINE double grid_reflected(double x, double low, double high)
{
    const double span = high - low;
    if (!(span > 0))
        return low;
    const double rest = fmod(fabs(x - low), 2 * span);
    return low + (rest > span ? 2 * span - rest : rest);
}

INDEX_INLINE double grid_low(int32_t align)
{
    return align ? 0 : -0.5;
}

INDEX_INLINE double grid_high(int32_t align, int64_t size)
{
    return (double)size - (align ? 1 : 0.5);
}

/* An index beyond the border by the padding; -1: a zero. */
INDEX_INLINE int64_t grid_folded(double i, int64_t size, int32_t padding, int32_t align)
{
    const double last = (double)(size - 1);
    if (i >= 0 && i <= last)
        return (int64_t)i;
    if (padding == STRATA_GRID_ZEROS)
        return -1;
    if (padding == STRATA_GRID_REFLECTION)
        i = grid_reflected(i, grid_low(align), grid_high(align, size));
    return (int64_t)grid_between(i, 0, last);
}

/* Keys' filter at distance t, a = -0.75. */
INDEX_INLINE double grid_cubic(double t)
{
    const double a = -0.75;
    t = fabs(t);
    return t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1
                  : ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

/* g: coordinate from -1 to 1; NaN counts as -1. Far beyond the border all is alike. */
INDEX_INLINE struct grid_taps grid_taps(double g, int64_t size, int32_t mode,
                                        int32_t padding, int32_t align)
{
    const double low = grid_low(align), high = grid_high(align, size);
    struct grid_taps t;
    g = g != g ? -1 : g;
    double x =
        align ? (g + 1) / 2 * (double)(size - 1) : ((g + 1) * (double)size - 1) / 2;
    x = grid_between(x, -0x1p40, 0x1p40);
    if (mode == STRATA_GRID_NEAREST) {
        t.index[0] = grid_folded(rint(x), size, padding, align);
        t.weight[0] = 1;
        return t;
    }
    if (mode == STRATA_GRID_LINEAR && padding == STRATA_GRID_BORDER)
        x = grid_between(x, 0, (double)(size - 1));
    if ((x < low || x > high) && padding == STRATA_GRID_REFLECTION)
        x = grid_reflected(x, low, high);
    const int taps = grid_count(mode);
    const double first = floor(x) - (taps / 2 - 1);
    for (int k = 0; k < taps; k++) {
        const double i = first + k;
        t.index[k] = grid_folded(i, size, padding, align);
        t.weight[k] = mode == STRATA_GRID_LINEAR ? 1 - fabs(i - x) : grid_cubic(i - x);
    }
    return t;
}

#endif /* PLUGINS_GRID_SAMPLE_GRID_SAMPLE_H */
