/* SPDX-License-Identifier: Apache-2.0
 *
 * What code does, counted: included before anything else by the files of
 * tests/libcounted.la. The compiler calls the test at each of their basic blocks; a byte
 * that a function of the C library goes through is a step too. A look-up in a table of
 * names is one: the tables are at most half full and seeded, so that only chance differs.
 */
#ifndef TESTS_NETWORK_STEPS_H
#define TESTS_NETWORK_STEPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uint64_t counted_steps;

static inline void *counted_memchr(const void *s, int c, size_t n)
{
    void *found = memchr(s, c, n);
    counted_steps += found ? (size_t)((char *)found - (const char *)s) : n;
    return found;
}

static inline void *counted_memcpy(void *to, const void *from, size_t n)
{
    counted_steps += n;
    return memcpy(to, from, n);
}

static inline void *counted_memmove(void *to, const void *from, size_t n)
{
    counted_steps += n;
    return memmove(to, from, n);
}

static inline size_t counted_strlen(const char *s)
{
    const size_t n = strlen(s);
    counted_steps += n;
    return n;
}

static inline char *counted_strchr(const char *s, int c)
{
    char *found = strchr(s, c);
    counted_steps += found ? (size_t)(found - s) : strlen(s);
    return found;
}

static inline int counted_strcmp(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    counted_steps += n;
    return (unsigned char)a[n] - (unsigned char)b[n];
}

#ifdef COUNT_STEPS
#define memchr counted_memchr
#define memcpy counted_memcpy
#define memmove counted_memmove
#define strlen counted_strlen
#define strchr counted_strchr
#define strcmp counted_strcmp
#endif

#endif /* TESTS_NETWORK_STEPS_H */
