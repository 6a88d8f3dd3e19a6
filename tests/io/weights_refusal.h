/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of weights files: what every refusal must say.
 */
#ifndef TESTS_IO_WEIGHTS_REFUSAL_H
#define TESTS_IO_WEIGHTS_REFUSAL_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/weights.h"

#define BYTES(s) (s), sizeof(s) - 1
#define P STRATA_EPARSE
#define U STRATA_EUNSUPPORTED
struct text {
    char *bytes;
    size_t size;
};

/* A refusal names all three: the path, `place` and `allowed`. */
static inline void expect_refusal(const char *name, const void *bytes, size_t size,
                                  int status, const char *place, const char *allowed)
{
    strata_error err = {0};
    struct weights *w = (struct weights *)&err;
    /* An exact-size copy on the heap lets sanitizers see a read past the end. */
    void *copy = malloc(size ? size : 1);
    cr_assert_not_null(copy);
    if (size)
        memcpy(copy, bytes, size);
    int got = weights_parse(&w, copy, size, "net/bad.weights", NULL, &err);
    cr_expect(got == status && err.status == status, "%s: status %d, not %d: %s", name,
              got, status, err.message);
    cr_expect_null(w, "%s: a result in spite of failure", name);
    cr_expect(strstr(err.message, "net/bad.weights: ") == err.message,
              "%s: path is not first in: %s", name, err.message);
    cr_expect_not_null(strstr(err.message, place), "%s: no '%s' in: %s", name, place,
                       err.message);
    cr_expect_not_null(strstr(err.message, allowed), "%s: no '%s' in: %s", name, allowed,
                       err.message);
    for (const char *c = err.message; *c; c++)
        cr_expect(*c >= ' ' && *c <= '~', "%s: byte %02x in the message", name,
                  (unsigned char)*c);
    weights_close(w);
    cr_expect_eq(weights_parse(&w, copy, size, "x", NULL, NULL), status,
                 "%s: another status without an error to fill", name);
    weights_close(w);
    free(copy);
}

struct raw_case {
    const char *name, *bytes;
    size_t size;
    int status;
    const char *place, *allowed;
};

/* A good file, cut at every length and with each bit flipped: no cut is read, no flip is
 * more than another value or a refusal. */
static inline void expect_no_harm(struct text *good)
{
    struct weights *w;
    for (size_t size = 0; size < good->size; size++) {
        char *cut = malloc(size ? size : 1);
        cr_assert_not_null(cut);
        memcpy(cut, good->bytes, size);
        cr_expect_neq(weights_parse(&w, cut, size, "cut", NULL, NULL), STRATA_OK,
                      "a file cut to %zu bytes was read", size);
        weights_close(w);
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * good->size; bit++) {
        strata_error err = {0};
        size_t total = 0, sum = 0;
        good->bytes[bit / 8] ^= (char)(1 << bit % 8);
        int status = weights_parse(&w, good->bytes, good->size, "flip", NULL, &err);
        cr_expect_eq(status, err.status);
        for (size_t i = 0; w && i < weights_count(w); i++) {
            struct weight_view v = weights_at(w, i);
            total += v.bytes;
            /* Read, so that a sanitizer sees a view that is not inside the file. */
            for (size_t b = 0; b < v.bytes; b++)
                sum += ((const unsigned char *)v.data)[b];
        }
        cr_expect(total <= good->size && sum <= 255 * total, "bit %zu: %zu bytes", bit,
                  total);
        weights_close(w);
        good->bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
}

#endif /* TESTS_IO_WEIGHTS_REFUSAL_H */
