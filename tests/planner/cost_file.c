/* SPDX-License-Identifier: Apache-2.0
 *
 * Cost files: what is written reads back, tables merge, malformed files are refused.
 */
#include "planner/cost/cost.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)((state >> 33) % n);
}

static void put(struct cost_table *t, const char *key, struct cost cost)
{
    strata_error err = {0};
    cr_assert_eq(cost_table_put(t, key, cost, &err), STRATA_OK, "%s", err.message);
}

static void fill(struct cost_table *t, int n)
{
    char key[64];
    cost_table_init(t, "host");
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%s k%u x=%u", draw(2) ? "run" : "reformat", draw(99),
                 draw(99));
        put(t, key, (struct cost){1 + draw(1000000), draw(1000), 1 + (int)draw(9)});
    }
}

static void expect_equal(const struct cost_table *a, const struct cost_table *b)
{
    cr_assert_str_eq(a->device, b->device);
    cr_assert_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        cr_assert_str_eq(a->entries[i].key, b->entries[i].key);
        cr_assert_eq(a->entries[i].cost.ns, b->entries[i].cost.ns);
        cr_assert_eq(a->entries[i].cost.spread, b->entries[i].cost.spread);
        cr_assert_eq(a->entries[i].cost.runs, b->entries[i].cost.runs);
    }
}

Test(cost_file, what_is_written_reads_back_and_is_sorted)
{
    for (int n = 0; n < 200; n += 19) {
        char path[] = "/tmp/strata-cost-XXXXXX";
        struct cost_table a, b;
        strata_error err = {0};
        int fd = mkstemp(path);
        cr_assert_geq(fd, 0);
        close(fd);
        fill(&a, n);
        cost_table_init(&b, "host");
        cr_assert_eq(cost_table_write(&a, path, &err), STRATA_OK, "%s", err.message);
        cr_assert_eq(cost_table_read(&b, path, &err), STRATA_OK, "%s", err.message);
        expect_equal(&a, &b);
        for (size_t i = 1; i < b.n; i++)
            cr_assert_lt(strcmp(b.entries[i - 1].key, b.entries[i].key), 0);
        cost_table_free(&a);
        cost_table_free(&b);
        unlink(path);
    }
}

Test(cost_file, a_merge_keeps_what_is_better_known_in_either_order)
{
    static const struct cost once = {100, 0, 1}, often = {300, 9, 5}, lower = {200, 9, 5};
    strata_error err = {0};
    for (int order = 0; order < 2; order++) {
        struct cost_table a, b, *into = order ? &b : &a, *from = order ? &a : &b;
        cost_table_init(&a, "host");
        cost_table_init(&b, "host");
        put(&a, "run only-a", once);
        put(&b, "run only-b", once);
        put(&a, "run runs", once);
        put(&b, "run runs", often);
        put(&a, "run time", often);
        put(&b, "run time", lower);
        cr_assert_eq(cost_table_merge(into, from, &err), STRATA_OK);
        cr_assert_eq(into->n, 4);
        cr_assert_eq(cost_table_find(into, "run only-a")->ns, 100);
        cr_assert_eq(cost_table_find(into, "run only-b")->ns, 100);
        cr_assert_eq(cost_table_find(into, "run runs")->ns, 300);
        cr_assert_eq(cost_table_find(into, "run time")->ns, 200);
        cr_assert_null(cost_table_find(into, "run other"));
        cost_table_free(&a);
        cost_table_free(&b);
    }
}

Test(cost_file, tables_of_two_devices_do_not_merge)
{
    struct cost_table a, b;
    strata_error err = {0};
    cost_table_init(&a, "host");
    cost_table_init(&b, "cuda");
    put(&b, "run x", (struct cost){1, 0, 1});
    cr_assert_eq(cost_table_merge(&a, &b, &err), STRATA_EMISMATCH);
    cr_assert(strstr(err.message, "cuda") && strstr(err.message, "host"));
    cr_assert_eq(a.n, 0);
    cost_table_free(&a);
    cost_table_free(&b);
}

#define HEAD "strata-costs 1\ndevice host\n"

static const struct {
    const char *text;
    int line;
    const char *says;
} malformed[] = {
    {"", 1, "the file is empty"},
    {"\n", 1, "no cost file"},
    {"strata-costs 1", 1, "no end"},
    {"strata-costs 1\n", 2, "before its header"},
    {"strata-costs 1\ndevice host", 2, "no end"},
    {"strata-costs 2\ndevice host\n", 1, "format '2'"},
    {"strata-costs  1\ndevice host\n", 1, "format ' 1'"},
    {"strata-costs 1 \ndevice host\n", 1, "format '1 '"},
    {"strata-costs 01\ndevice host\n", 1, "format '01'"},
    {"strata-costs 1\r\ndevice host\r\n", 1, "format"},
    {"strata-cost 1\ndevice host\n", 1, "no cost file"},
    {"Strata-costs 1\ndevice host\n", 1, "no cost file"},
    {"\xef\xbb\xbfstrata-costs 1\ndevice host\n", 1, "no cost file"},
    {"# hello\nstrata-costs 1\ndevice host\n", 1, "no cost file"},
    {"[network]\nformat = 1\n", 1, "no cost file"},
    {"strata-costs 1\n\ndevice host\n", 2, "device NAME"},
    {"strata-costs 1\ndevice\n", 2, "device NAME"},
    {"strata-costs 1\ndevice \n", 2, "device NAME"},
    {"strata-costs 1\nhost\n", 2, "device NAME"},
    {"strata-costs 1\ndevice cuda\n", 2, "'cuda'"},
    {"strata-costs 1\ndevice host \n", 2, "'host '"},
    {"strata-costs 1\ndevice ho\tst\n", 2, "0x09"},
    {"strata-costs 1\ndevice "
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaa\n",
     2, "63 bytes"},
    {HEAD "1 0 1 run a", 3, "no end"},
    {HEAD "x 0 1 run a\n", 3, "the time"},
    {HEAD "-1 0 1 run a\n", 3, "the time"},
    {HEAD "+1 0 1 run a\n", 3, "the time"},
    {HEAD " 1 0 1 run a\n", 3, "the time"},
    {HEAD "1.5 0 1 run a\n", 3, "the time"},
    {HEAD "1e3 0 1 run a\n", 3, "the time"},
    {HEAD "0x10 0 1 run a\n", 3, "the time"},
    {HEAD "01 0 1 run a\n", 3, "the time"},
    {HEAD "0 0 1 run a\n", 3, "the time 0"},
    {HEAD "100000000001 0 1 run a\n", 3, "100000000001"},
    {HEAD "9223372036854775807 0 1 run a\n", 3, "the time"},
    {HEAD "99999999999999999999999 0 1 run a\n", 3, "the time"},
    {HEAD "1\t0 1 run a\n", 3, "the time"},
    {HEAD "1  0 1 run a\n", 3, "the spread"},
    {HEAD "1 -2 1 run a\n", 3, "the spread"},
    {HEAD "1 100000000001 1 run a\n", 3, "the spread"},
    {HEAD "1 0 run a\n", 3, "the number of runs"},
    {HEAD "1 0 0 run a\n", 3, "the number of runs 0"},
    {HEAD "1 0 1000001 run a\n", 3, "1000001"},
    {HEAD "1 0 1\n", 3, "the number of runs"},
    {HEAD "1\n", 3, "the time"},
    {HEAD "1 0 1 \n", 3, "begins with"},
    {HEAD "1 0 1 walk a\n", 3, "begins with"},
    {HEAD "1 0 1  run a\n", 3, "begins with"},
    {HEAD "1 0 1 run\n", 3, "begins with"},
    {HEAD "1 0 1 RUN a\n", 3, "begins with"},
    {HEAD "1 0 1 run a \n", 3, "blank at the end"},
    {HEAD "1 0 1 run \n", 3, "blank at the end"},
    {HEAD "1 0 1 run a\tb\n", 3, "0x09"},
    {HEAD "1 0 1 run a\r\n", 3, "0x0d"},
    {HEAD "1 0 1 run \xc3\xa4\n", 3, "0xc3"},
    {HEAD "1 0 1 run \x7f\n", 3, "0x7f"},
    {HEAD "1 0 1 run a\n1 0 1 run a\n", 4, "twice"},
    {HEAD "1 0 1 run b\n\n# c\n1 0 1 run a\n", 6, "not sorted"},
    {HEAD "1 0 1 run a\nstrata-costs 1\n", 4, "the time"},
    {HEAD "<<<<<<< ours\n1 0 1 run a\n", 3, "the time"},
};

static void expect_refusal(const char *text, size_t size, int line, const char *says)
{
    char place[32];
    struct cost_table t;
    strata_error err = {0};
    cost_table_init(&t, "host");
    snprintf(place, sizeof place, "net.costs:%d: ", line);
    cr_expect_eq(cost_table_parse(&t, text, size, "net.costs", &err), STRATA_EPARSE,
                 "accepted: %.80s", text);
    cr_expect(strncmp(err.message, place, strlen(place)) == 0, "'%s', not line %d",
              err.message, line);
    cr_expect(strstr(err.message, says) != NULL, "'%s' lacks '%s'", err.message, says);
    cost_table_free(&t);
}

Test(cost_file, malformed_files_are_refused_with_file_and_line)
{
    static const char nul[] = HEAD "1 0 1 run a\0b\n";
    for (size_t i = 0; i < ARRAY_LENGTH(malformed); i++)
        expect_refusal(malformed[i].text, strlen(malformed[i].text), malformed[i].line,
                       malformed[i].says);
    expect_refusal(nul, sizeof nul - 1, 3, "NUL");
    for (int over = 0; over < 2; over++) { /* over the key's limit, over the line's */
        size_t key = over ? 3 * COST_KEY_MAX : COST_KEY_MAX + 1;
        char *text = calloc(1, sizeof HEAD + 16 + key);
        cr_assert_not_null(text);
        size_t n = (size_t)sprintf(text, HEAD "1 0 1 run ");
        memset(text + n, 'a', key - 4);
        text[n + key - 4] = '\n';
        expect_refusal(text, n + key - 3, 3, over ? "a line of" : "a key of");
        free(text);
    }
}

Test(cost_file, every_prefix_and_changed_byte_is_refused_or_read)
{
    static const char text[] = HEAD "# c\n12 3 4 reformat a>b 1x2\n1 0 1 run a\n";
    char copy[sizeof text];
    for (size_t i = 0; i < sizeof text - 1; i++)
        for (int byte = 0; byte < 256; byte++) {
            struct cost_table t;
            strata_error err = {0};
            cost_table_init(&t, "host");
            memcpy(copy, text, sizeof text);
            copy[i] = (char)byte;
            size_t size = byte ? sizeof text - 1 : i;
            int status = cost_table_parse(&t, copy, size, "f", &err);
            cr_assert(status == STRATA_OK || status == STRATA_EPARSE);
            cr_assert_eq(status == STRATA_OK, err.message[0] == '\0');
            cost_table_free(&t);
        }
}
