/* SPDX-License-Identifier: Apache-2.0
 *
 * Random weights, the same on every machine: element i is a function of the seed, the
 * weight's name and i alone, made of exact integer arithmetic and two correctly rounded
 * multiplications. No function of libm is used, whose last bit differs between systems.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/weights/weights.h"

#include <math.h>

#include "core/team.h"

enum { ALONE = 1 << 18 }; /* elements that take one thread a few ms at most */
#define DRAWS 6 /* 64-bit numbers an element; each holds two of the twelve uniforms */

/* SplitMix64's output function at counter x. */
static uint64_t mix(uint64_t x)
{
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* FNV-1a over the name, then mixed with the seed. */
static uint64_t stream_key(uint64_t seed, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return mix(mix(seed + 1) ^ hash);
}

/* The sum of twelve uniforms on [0, 1) less 6, in units of 2^-32: deviation 2^32. The
 * half unit that each misses on average is added, so that the mean is 0. */
static int64_t normal_units(uint64_t key, uint64_t element)
{
    uint64_t sum = 6;
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint64_t x = mix(key + element * DRAWS + i);
        sum += (x >> 32) + (x & UINT32_MAX);
    }
    return (int64_t)sum - INT64_C(6) * (INT64_C(1) << 32);
}

void weights_random(float *dst, int64_t count, int64_t fan_in, uint64_t seed,
                    const char *name)
{
    const uint64_t key = stream_key(seed, name);
    const double deviation = sqrt(2.0 / (double)(fan_in > 0 ? fan_in : 1));
    const double unit = deviation * 0x1p-32;
#pragma omp parallel for if (count > ALONE)
    for (int64_t i = 0; i < count; i++)
        dst[i] = (float)((double)normal_units(key, (uint64_t)i) * unit);
    if (count > ALONE)
        team_end();
}
