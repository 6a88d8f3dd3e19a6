/* SPDX-License-Identifier: Apache-2.0
 *
 * The INI reader's limits: each is held. tests/network/linear.c has what keeps them
 * cheap.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/ini/config_text.h"
#include "tests/support/scratch.h"

TestSuite(config_limits, .init = scratch_make, .fini = scratch_remove);

/* `n` copies of a pattern in which %d is the index, after a head; exactly `size` bytes
 * when size > 0, the rest blank lines. */
static char *repeated(const char *head, const char *pattern, int n, size_t size)
{
    size_t room = size ? size + 1 : strlen(head) + (size_t)n * (strlen(pattern) + 8) + 1;
    char *text = malloc(room);
    size_t used = strlen(head);
    memcpy(text, head, used + 1);
    for (int i = 0; i < n; i++) {
        char line[5000];
        size_t length = (size_t)snprintf(line, sizeof line, pattern, i, i, i);
        if (used + length >= room)
            break;
        memcpy(text + used, line, length + 1);
        used += length;
    }
    for (; size && used < size; used++)
        text[used] = '\n';
    text[used] = '\0';
    return text;
}

Test(config_limits, holds_its_limits_and_refuses_one_more)
{
    static const struct {
        const char *head, *pattern, *message;
        int limit;
    } cases[] = {
        {"", "[layer l%d]\n", "more than 262144 sections", CONFIG_MAX_SECTIONS},
        {"[bench]\n", "k%d = 1\n", "more than 256 keys in [bench]", CONFIG_MAX_KEYS},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char *text = repeated(cases[i].head, cases[i].pattern, cases[i].limit, 0);
        config_free(parse_good(text));
        free(text);
        text = repeated(cases[i].head, cases[i].pattern, cases[i].limit + 2, 0);
        const char *message = errors_with(text, NULL);
        cr_expect_not_null(strstr(message, cases[i].message), "%s", message);
        cr_expect_null(strstr(message, "more\n"), "told once: %s", message);
        free(text);
    }
}

Test(config_limits, reads_sixteen_mebibytes_and_not_one_byte_more)
{
    strata_error err = {0};
    struct config *c;
    char *text = repeated("[bench]\n", "", 0, CONFIG_MAX_BYTES + 1);
    config_free(parse_with(text, CONFIG_MAX_BYTES, NULL));
    cr_expect_eq(config_parse(&c, text, CONFIG_MAX_BYTES + 1, "t.ini", NULL, &err),
                 STRATA_EPARSE);
    cr_expect_not_null(strstr(err.message, "16777217 bytes"), "%s", err.message);
    error_clear(&err);
    cr_expect_eq(config_load(&c, spill_text("big.ini", text), NULL, &err), STRATA_EPARSE);
    cr_expect_not_null(strstr(err.message, "16777217 bytes"), "%s", err.message);
    free(text);
}

Test(config_limits, nested_variables_cannot_grow)
{
    char text[8192] = "[vars]\nv0 = aaaaaaaaaaaaaaaa\n";
    for (int i = 1; i < 60; i++)
        snprintf(text + strlen(text), 64, "v%d = ${v%d}${v%d}\n", i, i - 1, i - 1);
    const char *message = errors_with(text, NULL);
    cr_expect_not_null(strstr(message, "longer than 4096 bytes once variables"), "%s",
                       message);
}

Test(config_limits, values_of_variables_have_a_limit_together)
{
    static const int fits = CONFIG_MAX_BYTES / 1024;
    char head[2048];
    snprintf(head, sizeof head, "[vars]\nv = %01024d\n", 0);
    char *text = repeated(head, "[layer l%d]\na = ${v}\n", fits, 0);
    config_free(parse_good(text));
    free(text);
    text = repeated(head, "[layer l%d]\na = ${v}\n", fits + 2, 0);
    const char *message = errors_with(text, NULL);
    cr_expect_not_null(strstr(message, "more than 16777216 bytes together"), "%s",
                       message);
    cr_expect_null(strstr(message, "more\n"), "told once: %s", message);
    free(text);
}
