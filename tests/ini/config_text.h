/* SPDX-License-Identifier: Apache-2.0
 *
 * INI text as sections and pairs, for the tests of the reader.
 */
#ifndef TESTS_INI_CONFIG_TEXT_H
#define TESTS_INI_CONFIG_TEXT_H

#include <criterion/criterion.h>
#include <string.h>

#include "ini/config.h"

static inline struct config *parse_with(const char *text, size_t size,
                                        const strata_network_options *options)
{
    struct config *c;
    strata_error err = {0};
    cr_assert_eq(config_parse(&c, text, size, "t.ini", options, &err), STRATA_OK, "%s",
                 err.message);
    return c;
}

static inline struct config *parse(const char *text)
{
    return parse_with(text, strlen(text), NULL);
}

static inline struct config *parse_good(const char *text)
{
    strata_error err = {0};
    struct config *c = parse(text);
    cr_assert_eq(config_finish(c, &err), STRATA_OK, "%s", err.message);
    return c;
}

static inline struct config_section *section(struct config *c, const char *kind,
                                             const char *name)
{
    for (size_t i = 0; i < config_sections(c); i++) {
        struct config_section *s = config_section(c, i);
        if (!strcmp(s->kind, kind) && !strcmp(s->name, name))
            return s;
    }
    cr_assert_fail("no [%s %s]", kind, name);
    return NULL;
}

static inline struct config_pair *pair(struct config *c, const char *kind,
                                       const char *name, const char *key)
{
    struct config_pair *p = config_get(section(c, kind, name), key);
    cr_assert_not_null(p, "no %s in [%s %s]", key, kind, name);
    return p;
}

/* All errors of a text; static. */
static inline const char *errors_with(const char *text,
                                      const strata_network_options *options)
{
    static strata_error err;
    memset(&err, 0, sizeof err);
    struct config *c = parse_with(text, strlen(text), options);
    cr_expect_eq(config_finish(c, &err), STRATA_EPARSE, "accepted: %s", text);
    config_free(c);
    return err.message;
}

#endif /* TESTS_INI_CONFIG_TEXT_H */
