/* SPDX-License-Identifier: Apache-2.0
 *
 * What code does, counted: included before anything else by the files of
 * tests/libcounted.la. The compiler calls the test at each of their basic blocks; a byte
 * that a function of the C library goes through, writes or gives is a step too, and so is
 * an element that it sorts (its comparisons count themselves). What a look-up in a table
 * of names takes is no step: the tables are at most half full and their seed is the
 * run's, so that names which all lines share would tell of chance.
 */
#ifndef TESTS_NETWORK_STEPS_H
#define TESTS_NETWORK_STEPS_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern uint64_t counted_steps;

/* ---- bytes ----------------------------------------------------------------------- */

static inline void *counted_memchr(const void *s, int c, size_t n)
{
    void *found = memchr(s, c, n);
    counted_steps += found ? (size_t)((char *)found - (const char *)s) : n;
    return found;
}

static inline int counted_memcmp(const void *a, const void *b, size_t n)
{
    const char *at = a, *other = b;
    for (size_t i = 0; i < n && at[i] == other[i]; i++)
        counted_steps++;
    return memcmp(a, b, n);
}

static inline void *counted_memmem(const void *s, size_t n, const void *what, size_t size)
{
    void *found = memmem(s, n, what, size);
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

static inline void *counted_memset(void *to, int c, size_t n)
{
    counted_steps += n;
    return memset(to, c, n);
}

/* ---- texts ----------------------------------------------------------------------- */

static inline size_t counted_strlen(const char *s)
{
    const size_t n = strlen(s);
    counted_steps += n;
    return n;
}

static inline size_t counted_strnlen(const char *s, size_t most)
{
    const size_t n = strnlen(s, most);
    counted_steps += n;
    return n;
}

static inline size_t counted_strspn(const char *s, const char *set)
{
    const size_t n = strspn(s, set);
    counted_steps += n;
    return n;
}

static inline size_t counted_strcspn(const char *s, const char *set)
{
    const size_t n = strcspn(s, set);
    counted_steps += n;
    return n;
}

static inline char *counted_strchr(const char *s, int c)
{
    char *found = strchr(s, c);
    counted_steps += found ? (size_t)(found - s) : strlen(s);
    return found;
}

static inline char *counted_strrchr(const char *s, int c)
{
    counted_steps += strlen(s);
    return strrchr(s, c);
}

static inline int counted_strncmp(const char *a, const char *b, size_t most)
{
    size_t n = 0;
    while (n < most && a[n] && a[n] == b[n])
        n++;
    counted_steps += n;
    return n < most ? (unsigned char)a[n] - (unsigned char)b[n] : 0;
}

static inline int counted_strcmp(const char *a, const char *b)
{
    return counted_strncmp(a, b, SIZE_MAX);
}

static inline char *counted_strcat(char *to, const char *from)
{
    counted_steps += strlen(to) + strlen(from);
    return strcat(to, from);
}

static inline char *counted_strsep(char **rest, const char *set)
{
    char *part = strsep(rest, set);
    counted_steps += part ? strlen(part) : 0;
    return part;
}

static inline char *counted_strdup(const char *s)
{
    counted_steps += strlen(s);
    return strdup(s);
}

static inline char *counted_strndup(const char *s, size_t most)
{
    counted_steps += strnlen(s, most);
    return strndup(s, most);
}

/* ---- numbers and printing -------------------------------------------------------- */

static inline double counted_strtod_l(const char *s, char **end, locale_t locale)
{
    const double value = strtod_l(s, end, locale);
    counted_steps += (size_t)(*end - s);
    return value;
}

static inline double counted_strtod(const char *s, char **end)
{
    char *stop;
    const double value = strtod(s, &stop);
    counted_steps += (size_t)(stop - s);
    if (end)
        *end = stop;
    return value;
}

/* Bytes that were printed, or would have been; negative: none. */
static inline int counted_print(int n)
{
    counted_steps += n > 0 ? (size_t)n : 0;
    return n;
}

static inline int counted_vsnprintf(char *out, size_t size, const char *format,
                                    va_list args)
{
    return counted_print(vsnprintf(out, size, format, args));
}

static inline int counted_vasprintf(char **out, const char *format, va_list args)
{
    return counted_print(vasprintf(out, format, args));
}

static inline int counted_fputs(const char *s, FILE *f)
{
    counted_steps += strlen(s);
    return fputs(s, f);
}

/* ---- memory and sorting ---------------------------------------------------------- */

static inline void *counted_calloc(size_t n, size_t size)
{
    counted_steps += n * size;
    return calloc(n, size);
}

static inline void *counted_realloc(void *memory, size_t size)
{
    counted_steps += size;
    return realloc(memory, size);
}

static inline void counted_qsort(void *elements, size_t n, size_t size,
                                 int (*compare)(const void *a, const void *b))
{
    counted_steps += n;
    qsort(elements, n, size, compare);
}

#ifdef COUNT_STEPS
#define memchr counted_memchr
#define memcmp counted_memcmp
#define memmem counted_memmem
#define memcpy counted_memcpy
#define memmove counted_memmove
#define memset counted_memset
#define strlen counted_strlen
#define strnlen counted_strnlen
#define strspn counted_strspn
#define strcspn counted_strcspn
#define strchr counted_strchr
#define strrchr counted_strrchr
#define strncmp counted_strncmp
#define strcmp counted_strcmp
#define strcat counted_strcat
#define strsep counted_strsep
#define strdup counted_strdup
#define strndup counted_strndup
#define strtod_l counted_strtod_l
#define strtod counted_strtod
#define fputs counted_fputs
#define vsnprintf counted_vsnprintf
#define vasprintf counted_vasprintf
#define snprintf(...) counted_print(snprintf(__VA_ARGS__))
#define fprintf(...) counted_print(fprintf(__VA_ARGS__))
#define calloc counted_calloc
#define realloc counted_realloc
#define qsort counted_qsort
#endif

#endif /* TESTS_NETWORK_STEPS_H */
