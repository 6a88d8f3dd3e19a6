/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs that are inputs of the next run: pairs become [state] sections, and what is no
 * pair is refused.
 */
#include "tests/network/import/imported.h"

TestSuite(import_state, .timeout = 600);

#define MODEL                                                                            \
    "ir 8\nopset 21\ninput x f 1x4\ninput h f 1x4\ninput wide f 1x5\n"                   \
    "node Add x,h -> s\nnode Relu s -> y\nnode Relu wide -> w\n"                         \
    "output y\noutput s\noutput w\n"

static struct imported import_states(const struct import_state *states, size_t n)
{
    struct imported i = import_model_text(MODEL);
    const struct import_options options = {.states = states, .n_states = n};
    cr_assert_eq(i.status, STRATA_OK, "%s", i.err.message);
    import_free(i.im);
    i.status = import_make(&i.im, i.model, i.registry, &options, &i.err);
    return i;
}

Test(import_state, a_pair_is_a_state_and_no_binding)
{
    const struct import_state pair = {"s", "h"};
    struct imported i = import_states(&pair, 1);
    char *text;
    size_t size;
    cr_assert_eq(i.status, STRATA_OK, "%s", i.err.message);
    cr_assert_eq(import_text(i.im, "w.safetensors", &text, &size, &i.err), STRATA_OK);
    cr_expect(strstr(text, "outputs = y, w\n"), "%s", text);
    cr_expect(strstr(text, "\n[state h]\nshape = 1x4\nnext = s\n"), "%s", text);
    cr_expect(!strstr(text, "[input h]"), "%s", text);
    free(text);
    imported_close(&i);
}

Test(import_state, what_is_no_pair_is_refused)
{
    static const struct {
        struct import_state states[3];
        size_t n;
        const char *says;
    } cases[] = {
        {{{"s", "k"}}, 1, "no input of the network is called 'k'"},
        {{{"t", "h"}}, 1, "no output of the network is called 't'"},
        {{{"s", "wide"}}, 1, "output 's' cannot be the next 'wide'"},
        {{{"s", "h"}, {"y", "h"}}, 2, "input 'h' has several outputs"},
        {{{"s", "h"}, {"y", "x"}, {"w", "wide"}}, 3, "no outputs left"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct imported i = import_states(cases[k].states, cases[k].n);
        cr_expect_eq(i.status, STRATA_EINVAL, "case %zu", k);
        cr_expect(strstr(i.err.message, cases[k].says), "%s", i.err.message);
        imported_close(&i);
    }
}
