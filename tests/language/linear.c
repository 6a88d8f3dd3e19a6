/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of twice the size takes twice the steps to encode and to decode, and a little more
 * where merges are put in order, whatever is in it.
 */
#include "tests/language/tokens.h"
#include "tests/network/steps.h"

TestSuite(linear, .timeout = 600);

#define SIZE ((size_t)32 << 10) /* bytes of the shorter text */

uint64_t counted_steps;
static bool counts; /* this build does */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    counts = true;
    counted_steps++;
}

/* One letter, runs that expressions look far ahead in, marks that are put in order, added
 * tokens that take the spaces around them, single words that are none, bytes that are no
 * text. */
static const char *const units[] = {
    "a",  " ",   "\n",          "1", "the dog's 12 ", "\xcc\x81\xcc\xa3", " <|y|> ",
    "'l", " \t", "newtok",      "<", "\xff",          "\xe4\xb8\xad",     "<|x|>",
    "ab", "the", "newtok a\xf0"};

static struct tokenizer *opened(const char *name)
{
    char path[1024];
    struct tokenizer *t = NULL;
    strata_error err = {0};
    const char *srcdir = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/data/tokenizers/%s.json", srcdir ? srcdir : ".",
             name);
    cr_assert_eq(tokenizer_open(&t, path, &err), STRATA_OK, "%s", err.message);
    return t;
}

static uint64_t steps_of(const struct tokenizer *t, const char *unit, size_t size)
{
    char *text = malloc(size);
    cr_assert_not_null(text);
    for (size_t i = 0; i < size; i++)
        text[i] = unit[i % strlen(unit)];
    counted_steps = 0;
    struct tokens ids = encoded(t, text, size);
    struct token_text back = decoded(t, ids.ids, ids.n);
    const uint64_t taken = counted_steps;
    free(text);
    free(ids.ids);
    free(back.bytes);
    return taken;
}

static void expect_linear(const char *name)
{
    struct tokenizer *t = opened(name);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const uint64_t once = steps_of(t, units[i], SIZE);
        if (!counts)
            cr_skip_test("this build does not count steps");
        const uint64_t twice = steps_of(t, units[i], 2 * SIZE);
        cr_log_info("%s, '%s': %.1f steps a byte, %.2f times for twice", name, units[i],
                    (double)once / SIZE, (double)twice / (double)once);
        cr_expect_leq(twice, 2 * once + once / 4, "%s, '%s': %llu steps, and %llu", name,
                      units[i], (unsigned long long)once, (unsigned long long)twice);
    }
    tokenizer_free(t);
}

#define TOKENIZER(name)                                                                  \
    Test(linear, name)                                                                   \
    {                                                                                    \
        SKIP_WITHOUT_LIBRARIES;                                                          \
        expect_linear(#name);                                                            \
    }
TOKENIZER(gpt2)
TOKENIZER(llama3)
TOKENIZER(llama2)
TOKENIZER(metaspace)
TOKENIZER(clip)
TOKENIZER(bert)
