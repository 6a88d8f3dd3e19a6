/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of what no processor reads next: stores that go past the caches need not read
 * what they overwrite, and a device finds the bytes in memory, not in some core's cache.
 */
#ifndef ENGINE_PAST_CACHES_H
#define ENGINE_PAST_CACHES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

enum { PAST_CACHES_LINE = 64 };

static inline void store_line(char *to, const char *from)
{
    const __m128i *in = (const __m128i *)(const void *)from;
    __m128i *out = (__m128i *)(void *)to;
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
}

/* In any order with other stores until copied_past_caches. */
static inline void copy_past_caches(void *to, const void *from, size_t n)
{
    char *out = to;
    const char *in = from;
    const size_t before = -(uintptr_t)out % PAST_CACHES_LINE;
    const size_t head = before < n ? before : n;
    memcpy(out, in, head);
    for (n -= head, out += head, in += head; n >= PAST_CACHES_LINE;
         n -= PAST_CACHES_LINE, out += PAST_CACHES_LINE, in += PAST_CACHES_LINE)
        store_line(out, in);
    memcpy(out, in, n);
}

/* All copies are done before any store that follows, also one that starts a device. */
static inline void copied_past_caches(void)
{
    _mm_sfence();
}
#else
static inline void copy_past_caches(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
}

static inline void copied_past_caches(void) {}
#endif

#endif /* ENGINE_PAST_CACHES_H */
