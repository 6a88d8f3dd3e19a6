/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of ranges: what is written reads back, malformed files are refused with their
 * line, and damaged ones never harm.
 */
#include "calibrate/ranges.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;

static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)((state >> 33) % n);
}

static double real(void)
{
    float x;
    const uint32_t bits = draw(1u << 30) | (draw(2) << 31); /* finite */
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static void fill(struct ranges *r, int n)
{
    for (int i = 0; i < n; i++) {
        char name[64];
        strata_error err = {0};
        double a = real(), b = real();
        snprintf(name, sizeof name, "conv%u:%u with space", draw(50), draw(3));
        cr_assert_eq(
            ranges_put(r, name, a < b ? a : b, a < b ? b : a, draw(1u << 30), &err),
            STRATA_OK);
    }
}

Test(ranges, what_is_written_reads_back_bit_for_bit_and_is_sorted)
{
    state = (uint64_t)time(NULL);
    for (int n = 0; n < 120; n += 17) {
        char path[] = "/tmp/strata-ranges-XXXXXX";
        struct ranges a = {0}, b = {0};
        strata_error err = {0};
        const int fd = mkstemp(path);
        cr_assert_geq(fd, 0);
        close(fd);
        fill(&a, n);
        cr_assert_eq(ranges_write(&a, path, &err), STRATA_OK, "%s", err.message);
        cr_assert_eq(ranges_read(&b, path, &err), STRATA_OK, "%s", err.message);
        cr_assert_eq(a.n, b.n);
        for (size_t i = 0; i < a.n; i++) {
            const struct range *found = ranges_find(&b, a.list[i].tensor);
            cr_assert_eq(found, &b.list[i]);
            cr_expect(found->low == a.list[i].low && found->high == a.list[i].high &&
                      found->seen == a.list[i].seen);
            cr_expect(!i || strcmp(b.list[i - 1].tensor, b.list[i].tensor) < 0);
        }
        ranges_free(&a);
        ranges_free(&b);
        unlink(path);
    }
}

Test(ranges, the_text_is_this)
{
    struct ranges r = {0};
    char *text;
    size_t size;
    cr_assert_eq(ranges_put(&r, "relu1", 0, 0.1, 7, NULL), STRATA_OK);
    cr_assert_eq(ranges_put(&r, "conv1", -3.25, 7.5, 51380224, NULL), STRATA_OK);
    cr_assert_eq(ranges_put(&r, "relu1", 0, 0.5, 8, NULL), STRATA_OK);
    cr_assert_eq(ranges_text(&text, &size, &r, NULL), STRATA_OK);
    cr_expect_str_eq(text, "strata-ranges 1\n"
                           "# LOW HIGH SEEN TENSOR, sorted by TENSOR\n"
                           "-3.25 7.5 51380224 conv1\n"
                           "0 0.5 8 relu1\n");
    cr_expect_null(ranges_find(&r, "relu"));
    free(text);
    ranges_free(&r);
}

#define HEAD "strata-ranges 1\n"

static const struct {
    const char *text;
    int line;
    const char *says;
} malformed[] = {
    {"", 1, "empty"},
    {"\n", 1, "no ranges"},
    {"strata-ranges 1", 1, "no end"},
    {"strata-costs 1\n", 1, "no ranges"},
    {"strata-ranges 2\n", 1, "format '2'"},
    {"strata-ranges 1 \n", 1, "format '1 '"},
    {"strata-ranges 1\r\n", 1, "format"},
    {"# c\nstrata-ranges 1\n", 1, "no ranges"},
    {HEAD "0 1 2 a", 2, "no end"},
    {HEAD "x 1 2 a\n", 2, "the low end"},
    {HEAD " 0 1 2 a\n", 2, "the low end"},
    {HEAD "0  1 2 a\n", 2, "the high end"},
    {HEAD "0x1 1 2 a\n", 2, "the low end"},
    {HEAD "0 inf 2 a\n", 2, "the high end"},
    {HEAD "nan 1 2 a\n", 2, "the low end"},
    {HEAD "0 1e39 2 a\n", 2, "beyond what FP32"},
    {HEAD "-1e999 1 2 a\n", 2, "beyond what FP32"},
    {HEAD "0 1,5 2 a\n", 2, "the high end"},
    {HEAD "0 1 2.5 a\n", 2, "number of values"},
    {HEAD "0 1 -2 a\n", 2, "number of values"},
    {HEAD "0 1 02 a\n", 2, "number of values"},
    {HEAD "0 1 1234567890123456789 a\n", 2, "number of values"},
    {HEAD "0 1 a\n", 2, "number of values"},
    {HEAD "0 1 2\n", 2, "number of values"},
    {HEAD "0 1 2 \n", 2, "name is missing"},
    {HEAD "0 1 2 a\tb\n", 2, "0x09"},
    {HEAD "0 1 2 a\r\n", 2, "0x0d"},
    {HEAD "1 0.5 2 a\n", 2, "above the high one"},
    {HEAD "0 1 2 a\n0 1 2 a\n", 3, "twice"},
    {HEAD "0 1 2 b\n\n# c\n0 1 2 a\n", 5, "not sorted"},
    {HEAD "<<<<<<< ours\n0 1 2 a\n", 2, "the low end"},
};

static void expect_refusal(const char *text, size_t size, int line, const char *says)
{
    char place[32];
    struct ranges r = {0};
    strata_error err = {0};
    snprintf(place, sizeof place, "net.ranges:%d: ", line);
    cr_expect_eq(ranges_parse(&r, text, size, "net.ranges", &err), STRATA_EPARSE,
                 "accepted: %.80s", text);
    cr_expect(strncmp(err.message, place, strlen(place)) == 0, "'%s', not line %d",
              err.message, line);
    cr_expect(strstr(err.message, says) != NULL, "'%s' lacks '%s'", err.message, says);
    cr_expect(r.n == 0 && !r.list, "something is left");
}

Test(ranges, malformed_files_are_refused_with_file_and_line)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        expect_refusal(malformed[i].text, strlen(malformed[i].text), malformed[i].line,
                       malformed[i].says);
    expect_refusal(HEAD "0 1 2 a\0b\n", sizeof HEAD + 9, 2, "NUL");
}

Test(ranges, a_name_or_a_line_too_long_is_refused)
{
    char text[2000] = HEAD "0 1 2 ";
    const size_t head = strlen(text);
    memset(text + head, 'a', RANGES_NAME_MAX + 1);
    text[head + RANGES_NAME_MAX + 1] = '\n';
    expect_refusal(text, head + RANGES_NAME_MAX + 2, 2, "256 bytes");
    memset(text + head, 'a', 1000);
    text[head + 1000] = '\n';
    expect_refusal(text, head + 1001, 2, "bytes; at most");
}

/* One to four bytes of a good file are changed, taken out or put in; what is accepted
 * reads back as it is written. */
Test(ranges, damaged_files_are_refused_or_read)
{
    state = (uint64_t)time(NULL);
    for (int round = 0; round < 20000; round++) {
        char text[] = HEAD "# LOW HIGH SEEN TENSOR, sorted by TENSOR\n"
                           "-3.25 7.5 51380224 conv1\n-1e-05 0 12 data\n0 6.5 9 relu:1\n";
        size_t size = sizeof text - 1;
        struct ranges r = {0}, again = {0};
        strata_error err = {0};
        for (unsigned k = 0, n = 1 + draw(4); k < n; k++) {
            const size_t at = draw((unsigned)size);
            if (draw(3) == 0) {
                memmove(text + at, text + at + 1, size - at - 1);
                size--;
            } else {
                text[at] = draw(2) ? (char)draw(256) : "0 -.e\n#9"[draw(8)];
            }
        }
        const int status = ranges_parse(&r, text, size, "x", &err);
        cr_assert_eq(status, err.status);
        if (status == STRATA_OK) {
            char *out;
            size_t n;
            cr_assert_eq(ranges_text(&out, &n, &r, &err), STRATA_OK);
            cr_assert_eq(ranges_parse(&again, out, n, "y", &err), STRATA_OK, "%s",
                         err.message);
            cr_assert_eq(again.n, r.n);
            free(out);
        }
        ranges_free(&r);
        ranges_free(&again);
    }
}
