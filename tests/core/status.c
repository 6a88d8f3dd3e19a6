/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages, the logger, did-you-mean and the allocator front.
 */
#include "core/alloc.h"
#include "core/checked.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(status, every_code_has_a_text_of_its_own)
{
    for (int a = STRATA_OK; a <= STRATA_EINTERNAL; a++)
        for (int b = a + 1; b <= STRATA_EINTERNAL; b++)
            cr_expect_str_neq(strata_status_text(a), strata_status_text(b));
    cr_expect_str_eq(strata_status_text(-1), "unknown status");
    cr_expect_str_eq(strata_status_text(STRATA_EINTERNAL + 1), "unknown status");
}

Test(status, the_first_failure_is_kept)
{
    strata_error err;
    error_clear(&err);
    cr_expect_eq(error_set(&err, STRATA_EIO, "disk %d", 7), STRATA_EIO);
    cr_expect_eq(error_set(&err, STRATA_ENOMEM, "later"), STRATA_ENOMEM);
    cr_expect_eq(err.status, STRATA_EIO);
    cr_expect_str_eq(err.message, "disk 7");
    cr_expect_eq(error_set(NULL, STRATA_EIO, "no place to write"), STRATA_EIO);
}

Test(status, prefixes_stack_and_long_messages_are_cut_whole)
{
    strata_error err;
    error_clear(&err);
    error_set(&err, STRATA_EINVAL, "bad");
    error_prefix(&err, "layer %s", "conv1");
    error_prefix(&err, "net.ini");
    cr_expect_str_eq(err.message, "net.ini: layer conv1: bad");
    for (int i = 0; i < 2000; i++)
        error_append(&err, " more text");
    error_prefix(&err, "outer");
    cr_expect_eq(err.length, strlen(err.message));
    cr_expect_lt(err.length, sizeof err.message);
    cr_expect_eq(strncmp(err.message, "outer: net.ini: layer", 21), 0);
}

Test(status, a_message_that_does_not_fit_ends_with_a_whole_line_and_says_so)
{
    static const char last[] = "\n(the rest is left out)";
    strata_error err;
    error_clear(&err);
    error_set(&err, STRATA_EPLAN, "nothing can run here:");
    for (int i = 0; i < 500; i++)
        error_append(&err, "\n  impl %03d: a reason", i);
    error_append(&err, "\n  remedy: none");
    error_prefix(&err, "net.ini");
    const size_t n = strlen(err.message), end = n - strlen(last);
    cr_assert_eq(err.length, n);
    cr_expect_str_eq(err.message + end, last);
    cr_expect_eq(strncmp(err.message + end - 9, " a reason", 9), 0, "%s",
                 err.message + end - 40);
    cr_expect_eq(strncmp(err.message, "net.ini: nothing", 16), 0);
}

Test(status, messages_hold_nothing_that_a_terminal_obeys)
{
    strata_error err;
    error_clear(&err);
    error_set(&err, STRATA_EIO, "a\033[2Jb\177c\302\233d%s\n\te", "\342\200\256");
    cr_expect_str_eq(err.message, "a?[2Jb?c?d?\n\te");
    cr_expect_eq(err.length, strlen(err.message));
    error_append(&err, "\303\244\377\302");
    error_prefix(&err, "\007x");
    cr_expect_str_eq(err.message, "?x: a?[2Jb?c?d?\n\te\303\244??");
}

Test(status, tells_where_a_message_has_a_place)
{
    static const struct {
        const char *text;
        bool has;
    } cases[] = {
        {"net.ini:3:14: error: no", true}, {"a.costs:2: error: no", true},
        {"net.ini: error: no", false},     {"no\nnet.ini:3: error: no", false},
        {"--set a.b=c: error: no", true},  {"error: no", false},
        {":3: error: no", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        strata_error err;
        error_clear(&err);
        error_set(&err, STRATA_EPARSE, "%s", cases[i].text);
        cr_expect_eq(error_has_place(&err), cases[i].has, "%s", cases[i].text);
    }
}

static int lines;
static char last_line[2048];
static void collect(void *user, int level, const char *text)
{
    (void)level;
    (*(int *)user)++;
    snprintf(last_line, sizeof last_line, "%s", text);
}

Test(status, the_logger_drops_what_is_above_its_level)
{
    strata_set_logger(collect, &lines, STRATA_LOG_INFO);
    log_line(STRATA_LOG_DEBUG, "not seen");
    log_line(STRATA_LOG_INFO, "seen %d", 1);
    cr_expect_eq(lines, 1);
    cr_expect_str_eq(last_line, "seen 1");
}

Test(status, suggests_only_near_names)
{
    static const char *const names[] = {"stride", "padding", "kernel"};
    cr_expect_str_eq(suggest("strid", names, 3), "stride");
    cr_expect_str_eq(suggest("rnu", (const char *[]){"list", "run"}, 2), "run");
    cr_expect_str_eq(suggest("kernle", names, 3), "kernel");
    cr_expect_null(suggest("groups", names, 3));
    cr_expect_null(suggest("", names, 3));
}

Test(checked, refuses_overflow_and_negatives)
{
    int64_t out = 7;
    cr_expect_not(checked_add(INT64_MAX, 1, &out));
    cr_expect_not(checked_mul(INT64_MAX / 2, 3, &out));
    cr_expect_not(checked_add(-1, 5, &out));
    cr_expect_not(checked_round_up(INT64_MAX, 8, &out));
    cr_expect_not(checked_product((const int64_t[]){INT64_C(1) << 40, 1 << 24}, 2, &out));
    cr_expect_eq(out, 7, "a refused operation leaves its output alone");
    cr_expect(checked_mul_add(6, 7, 8, &out));
    cr_expect_eq(out, 50);
    cr_expect(checked_product(NULL, 0, &out));
    cr_expect_eq(out, 1);
}

Test(alloc, counts_what_it_gives_and_takes)
{
    struct allocator a;
    strata_memory_stats stats;
    cr_assert_eq(allocator_init(&a, host_memory(), NULL), STRATA_OK);
    void *p = allocator_get(&a, 1000, "p", NULL);
    void *q = allocator_get(&a, 24, "q", NULL);
    cr_assert(p && q);
    cr_expect_eq((uintptr_t)p % TENSOR_ALIGNMENT, 0);
    allocator_put(&a, p, 1000);
    allocator_stats(&a, &stats);
    cr_expect_eq(stats.current_bytes, 24);
    cr_expect_eq(stats.peak_bytes, 1024);
    cr_expect_eq(stats.allocations, 2);
    cr_expect_eq(stats.current_blocks, 1);
    allocator_put(&a, q, 24);
    allocator_destroy(&a);
}

static void *refuse(void *user, size_t bytes, size_t alignment)
{
    (void)user, (void)bytes, (void)alignment;
    return NULL;
}

Test(alloc, an_exhausted_allocator_says_how_much_was_asked_for_what)
{
    struct allocator a;
    strata_error err;
    strata_memory_stats stats;
    error_clear(&err);
    cr_assert_eq(allocator_init(&a, host_memory(), NULL), STRATA_OK);
    a.callbacks.alloc = refuse;
    cr_expect_null(allocator_get(&a, 4096, "the arena", &err));
    cr_expect_eq(err.status, STRATA_ENOMEM);
    cr_expect_str_eq(err.message, "out of memory: 4096 bytes for the arena");
    allocator_stats(&a, &stats);
    cr_expect_eq(stats.failures, 1);
    allocator_destroy(&a);
}

Test(alloc, lists_grow_without_losing_elements)
{
    int *list = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 100; i++) {
        cr_assert_eq(grow(&list, &capacity, i, sizeof *list, NULL), STRATA_OK);
        list[i] = (int)i;
    }
    for (int i = 0; i < 100; i++)
        cr_expect_eq(list[i], i);
    free(list);
}

Test(status, headers_have_the_version_of_the_library)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", STRATA_VERSION_MAJOR, STRATA_VERSION_MINOR,
             STRATA_VERSION_PATCH);
    cr_expect_str_eq(strata_version(), text, "strata.h and configure.ac disagree");
    cr_expect_eq(strata_version_number(), STRATA_VERSION_NUMBER);
    cr_expect_eq(STRATA_VERSION_NUMBER / 10000, STRATA_VERSION_MAJOR);
}
