/* SPDX-License-Identifier: Apache-2.0
 *
 * The INI reader's values: numbers, sizes, times, words and lists.
 */
#include <math.h>
#include <stdio.h>

#include "tests/ini/config_text.h"

#define MIB (1 << 20)

/* "[bench]\nv = TEXT" as a pair. */
static struct config *value_of(const char *text, struct config_pair **p)
{
    char file[6000];
    snprintf(file, sizeof file, "[profile]\nN = 7\n[bench]\nv = %s\n", text);
    struct config *c = parse_good(file);
    config_profile(c);
    *p = pair(c, "bench", "", "v");
    return c;
}

Test(config_values, reads_numbers)
{
    static const struct {
        const char *text;
        bool good;
        double value;
    } reals[] = {
        {"1", true, 1},          {"-0.5", true, -0.5},
        {".5", true, 0.5},       {"1e-5", true, 1e-5},
        {"+2.", true, 2},        {"0.00392156", true, 0.00392156},
        {"inf", true, INFINITY}, {"-inf", true, -INFINITY},
        {"1e", false, 0},        {"1e999", false, 0},
        {"nan", false, 0},       {"0x1p3", false, 0},
        {"1,5", false, 0},       {"1 2", false, 0},
        {".", false, 0},         {"infinity", false, 0},
        {"--1", false, 0},       {"\"\"", false, 0},
    };
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } integers[] = {
        {"0", true, 0},
        {"-7", true, -7},
        {"+7", true, 7},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"18446744073709551617", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"0x10", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"1 000", false, 0},
        {"N", false, 0},
    };
    struct config_pair *p;
    for (size_t i = 0; i < ARRAY_LENGTH(reals); i++) {
        double value = 42;
        struct config *c = value_of(reals[i].text, &p);
        bool good = config_real(c, p, -INFINITY, INFINITY, &value);
        cr_expect_eq(good, reals[i].good, "real %s", reals[i].text);
        cr_expect(value == (good ? reals[i].value : 42), "real %s", reals[i].text);
        cr_expect_eq(config_errors(c), !good);
        config_free(c);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(integers); i++) {
        int64_t value = 42;
        const char *text = integers[i].text[0] ? integers[i].text : "\"\"";
        struct config *c = value_of(text, &p);
        bool good = config_int(c, p, INT64_MIN, INT64_MAX, &value);
        cr_expect_eq(good, integers[i].good, "integer %s", text);
        cr_expect_eq(value, good ? integers[i].value : 42, "integer %s", text);
        cr_expect_eq(config_errors(c), !good);
        config_free(c);
    }
}

Test(config_values, reads_sizes_and_times)
{
    static const struct {
        const char *text;
        bool is_time, good;
        uint64_t value;
    } cases[] = {
        {"4096", false, true, 4096},
        {"64MiB", false, true, 64 * MIB},
        {"1 GB", false, true, 1000000000},
        {"1.5GiB", false, true, 1610612736},
        {"0.5 kB", false, true, 500},
        {"3B", false, true, 3},
        {"9007199254740993", false, true, 9007199254740993},
        {"8388608TiB", false, false, 0},
        {"1mib", false, false, 0},
        {"-1", false, false, 0},
        {"MiB", false, false, 0},
        {"500us", true, true, 500000},
        {"2 ms", true, true, 2000000},
        {"1.5s", true, true, 1500000000},
        {"7ns", true, true, 7},
        {"2min", true, true, 120000000000},
        {"5", true, false, 0},
        {"5 h", true, false, 0},
        {"-1s", true, false, 0},
    };
    struct config_pair *p;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        uint64_t value = 42;
        struct config *c = value_of(cases[i].text, &p);
        bool good = (cases[i].is_time ? config_time : config_size)(c, p, &value);
        cr_expect_eq(good, cases[i].good, "%s", cases[i].text);
        cr_expect_eq(value, good ? cases[i].value : 42, "%s: %llu", cases[i].text,
                     (unsigned long long)value);
        config_free(c);
    }
}

Test(config_values, reads_flags_and_choices)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true"};
    struct config_pair *p;
    int index = -1;
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        bool flag = i % 2 == 0;
        struct config *c = value_of(words[i], &p);
        cr_expect(config_bool(c, p, &flag) && flag == (i % 2), "%s", words[i]);
        cr_expect(config_choice(c, p, "off|no|yes|true|on|false", &index));
        config_free(c);
    }
    struct config *c = value_of("max", &p);
    cr_expect(config_choice(c, p, "maximum|max", &index) && index == 1);
    cr_expect_not(config_choice(c, p, "maximum|ma|ax|maxx", &index));
    cr_expect_not(config_choice(c, p, "", &index));
    cr_expect_eq(index, 1);
    config_free(c);
}

Test(config_values, reads_lists_of_integers)
{
    static const struct {
        const char *text;
        size_t n; /* 0: refused */
        int64_t v[4];
    } cases[] = {
        {"3", 1, {3}},
        {"3x3", 2, {3, 3}},
        {"1 x 3 x 28 x 28", 4, {1, 3, 28, 28}},
        {"3, -3", 2, {3, -3}},
        {"1,2,3", 3, {1, 2, 3}},
        {"N x 2", 2, {7, 2}},
        {"2xN", 2, {2, 7}},
        {"N, N", 2, {7, 7}},
        {"3 3", 0, {0}},
        {"3x", 0, {0}},
        {"x3", 0, {0}},
        {"3xx3", 0, {0}},
        {"3 x 3, 3", 0, {0}},
        {"1,2,3,4,5", 0, {0}},
        {"1, 100", 0, {0}},
        {"M", 0, {0}},
        {"1;2", 0, {0}},
        {",", 0, {0}},
    };
    struct config_pair *p;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        int64_t v[4];
        size_t n = 0;
        struct config *c = value_of(cases[i].text, &p);
        bool good = config_ints(c, p, -9, 99, v, 4, &n);
        cr_expect_eq(good, cases[i].n > 0, "%s", cases[i].text);
        cr_expect_eq(n, cases[i].n, "%s", cases[i].text);
        cr_expect_eq(config_errors(c), !good);
        for (size_t k = 0; k < n; k++)
            cr_expect_eq(v[k], cases[i].v[k], "%s, item %zu", cases[i].text, k);
        config_free(c);
    }
}

Test(config_values, reads_lists_of_reals_and_words)
{
    struct config_pair *p;
    struct config_item *items;
    double v[3];
    size_t n;
    struct config *c = value_of("0.5, -1e2 ,3", &p);
    cr_assert(config_reals(c, p, v, 3, &n) && n == 3);
    cr_expect(v[0] == 0.5 && v[1] == -100 && v[2] == 3);
    cr_expect_not(config_reals(c, p, v, 2, &n));
    cr_assert(config_list(c, p, &items, &n) && n == 3);
    cr_expect_str_eq(items[1].text, "-1e2");
    cr_expect_eq(items[1].offset, 5);
    config_list_free(items, n);
    config_free(c);
    c = value_of("a,,b", &p);
    cr_expect_not(config_list(c, p, &items, &n));
    cr_expect_not(config_reals(c, p, v, 3, &n));
    cr_expect_eq(config_errors(c), 2);
    config_free(c);
}
