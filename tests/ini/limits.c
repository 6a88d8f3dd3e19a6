/* SPDX-License-Identifier: Apache-2.0
 *
 * The INI reader's limits: each is held, and any text is judged in linear time.
 */
#include <time.h>

#include "tests/ini/config_text.h"
#include "tests/support/large_text.h"
#include "tests/support/scratch.h"

TestSuite(config_limits, .init = scratch_make, .fini = scratch_remove);

Test(config_limits, holds_its_limits_and_refuses_one_more)
{
    static const struct {
        const char *head, *pattern, *message;
        int limit;
    } cases[] = {
        {"", "[layer l%d]\n", "more than 65536 sections", CONFIG_MAX_SECTIONS},
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

Test(config_limits, judges_any_sixteen_mebibytes_within_two_seconds, .timeout = 300)
{
    static const struct {
        const char *name, *head, *pattern;
    } cases[] = {
        {"brackets", "", "["},
        {"blank lines", "", "\n"},
        {"equal signs", "[bench]\n", "=\n"},
        {"backslashes", "[bench]\n", "\\\n"},
        {"one key again", "[bench]\n", "k = 1\n"},
        {"unknown sections", "", "[a%d]\n"},
        {"one section again", "", "[bench]\n"},
        {"sections to the limit", "", "[layer l%d]\na=1\nb=2\nc=%d\n"},
        {"sections of many keys", "",
         "[layer l%d]\na=1\nb=1\nc=1\nd=1\ne=1\nf=1\ng=1\nh=1\ni=1\nj=1\nk=1\nl=1\nm=1\n"
         "n=1\no=1\np=1\nq=1\nr=1\ns=1\nt=1\nu=1\nv=1\nw=1\nx=1\ny=1\nz=1\naa=1\nbb=1\n"},
        {"lists", "", "[layer l%d]\ninputs = a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\n"},
        {"undefined variables", "", "[layer l%d]\na = ${b}${c}\nd = ${e}\n"},
        {"quotes", "", "[layer l%d]\na = \"\"\"\n"},
        {"bytes above", "", "\xff\xff\xff\xff\n"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char *text =
            repeated(cases[i].head, cases[i].pattern, CONFIG_MAX_BYTES, CONFIG_MAX_BYTES);
        strata_error err = {0};
        clock_t start = clock();
        struct config *c = parse_with(text, CONFIG_MAX_BYTES, NULL);
        for (size_t k = 0; k < config_sections(c); k++)
            config_unknown(c, config_section(c, k), NULL, 0);
        config_finish(c, &err);
        config_free(c);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        cr_expect_lt(seconds, SECONDS, "%s: %.2f s", cases[i].name, seconds);
        free(text);
    }
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
