/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation fails once, and all from there on, while a tokenizer is opened and
 * used: an error each time, nothing leaks, and the next try works. jansson's are left
 * out: see docs/limits.md.
 */
#include "tests/language/tokens.h"
#include "tests/support/fault.h"

static void open_faults(void)
{
    fault_json(false);
}

TestSuite(faults, .init = open_faults, .timeout = 3600);

static const char text[] = "The  dog's 12 <s>\n \xe4\xb8\xad"
                           "e\xcc\x81\xff <|y|> newtok";

/* Whether all went well. */
static bool try(const char *path)
{
    struct tokenizer *t;
    struct tokens ids = {0};
    struct token_text out = {0};
    strata_error err = {0};
    int status = tokenizer_open(&t, path, &err);
    if (status == STRATA_OK)
        status = tokenizer_encode(t, text, sizeof text - 1, &ids, &err);
    cr_expect(status == STRATA_OK || ids.n == 0);
    if (status == STRATA_OK)
        status = tokenizer_decode(t, ids.ids, ids.n, &out, &err);
    cr_expect(status == STRATA_OK || status == STRATA_ENOMEM, "%s: status %d: %s", path,
              status, err.message);
    cr_expect_eq(err.status, status);
    tokenizer_free(t);
    free(ids.ids);
    free(out.bytes);
    return status == STRATA_OK;
}

static void expect_errors(const char *name)
{
    char path[1024];
    const char *srcdir = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/data/tokenizers/%s.json", srcdir ? srcdir : ".",
             name);
    fault_arm(FAULT_MEMORY, 0, false);
    cr_assert(try(path));
    const long calls = fault_disarm(), blocks = fault_blocks();
    cr_assert_gt(calls, 50);
    for (long at = 1; at <= calls; at++) {
        fault_arm(FAULT_MEMORY, at, at % 2);
        cr_expect(!try(path), "%s: allocation %ld failed, and nothing said so", name, at);
        fault_disarm();
        cr_assert_eq(fault_blocks(), blocks, "%s: allocation %ld leaks", name, at);
    }
    cr_expect(try(path));
}

#define TOKENIZER(name)                                                                  \
    Test(faults, name)                                                                   \
    {                                                                                    \
        SKIP_WITHOUT_LIBRARIES;                                                          \
        expect_errors(#name);                                                            \
    }
TOKENIZER(llama3)
TOKENIZER(llama2)
TOKENIZER(metaspace)
TOKENIZER(clip)
TOKENIZER(bert)
