/* SPDX-License-Identifier: Apache-2.0
 *
 * All steps of a session in a row, twice; and, where the two runs differ, why.
 */
#include "check/harness/session.h"

#include <stdlib.h>
#include <string.h>

/* The first element of output i that is not as in `expected`, with what it is as text;
 * -1: none, -2: no memory. */
static int64_t find_difference(const struct session *s, int i, const void *expected,
                               char found[NUMBER_TEXT])
{
    const int64_t n = s->out[i].count;
    int64_t at = -1;
    void *values = malloc((size_t)n * VALUE_SIZE + 1);
    if (!values)
        return -2;
    session_read(s, i, values);
    for (int64_t k = 0; k < n && at < 0; k++)
        if (!number_same(s->out[i].dtype, values, expected, k)) {
            at = k;
            number_text(found, values, s->out[i].dtype, k);
        }
    free(values);
    return at;
}

/* Output i differs in a run on other initial contents and bands: which of them, or
 * neither, made the difference. */
static const char *find_cause(struct session *s, int i, const void *expected)
{
    char value[NUMBER_TEXT];
    if (session_run(s, session_patterns[0]) == STRATA_OK &&
        find_difference(s, i, expected, value) >= 0)
        return "nondeterministic";
    s->plain_bands = true;
    const int status = session_run(s, session_patterns[1]);
    s->plain_bands = false;
    return status == STRATA_OK && find_difference(s, i, expected, value) == -1
               ? "reads-outside"
               : "stale-read";
}

/* A second run on other initial contents must give the same bits. */
static int run_again(struct session *s, void *const *out)
{
    const bool exact = !(s->impl->flags & STRATA_NONDETERMINISTIC);
    int status = session_run(s, session_patterns[1]);
    if (status == STRATA_OK)
        status = session_inspect(s, session_patterns[1]);
    for (int i = 0; i < s->node.n_out && exact && status == STRATA_OK; i++) {
        char now[NUMBER_TEXT], was[NUMBER_TEXT];
        const int64_t at = find_difference(s, i, out[i], now);
        if (at == -2)
            return error_no_memory(&s->err, (size_t)s->out[i].count, "second result");
        if (at < 0)
            continue;
        const strata_tensor view = session_output(s, i);
        const char *rule = tensor_find_pattern(&view, session_patterns[1]) == at
                               ? "unwritten"
                               : find_cause(s, i, out[i]);
        status = session_fault(
            s, rule, "output %d, element %lld is %s on a second run, was %s", i,
            (long long)at, now, number_text(was, out[i], s->out[i].dtype, at));
    }
    return status;
}

bool harness_refuses(struct harness_node *n, const struct registry_impl *impl, int row,
                     const struct harness_formats *formats,
                     const strata_epilogue *epilogue)
{
    const void *none[HARNESS_WEIGHTS > HARNESS_INPUTS ? HARNESS_WEIGHTS
                                                      : HARNESS_INPUTS] = {NULL};
    struct session *s = malloc(sizeof *s);
    size_t bytes;
    if (!s)
        return false;
    n->ask = true;
    int status = session_make(s, n, impl, row, formats, none, none, epilogue);
    if (status == STRATA_OK)
        status = session_size(s, &bytes);
    n->ask = false;
    n->vetoed = status != STRATA_OK && n->vetoed && !s->fault;
    n->err = s->err;
    session_free(s);
    free(s);
    return n->vetoed;
}

int harness_run(struct harness_node *n, const struct registry_impl *impl, int row,
                const struct harness_formats *formats, const void *const *in,
                const void *const *weight, const strata_epilogue *epilogue,
                void *const *out)
{
    struct session *s = malloc(sizeof *s);
    char phase[HARNESS_PHASE] = "";
    if (!s)
        return error_no_memory(&n->err, sizeof *s, "a session");
    int status = session_make(s, n, impl, row, formats, in, weight, epilogue);
    if (status == STRATA_OK)
        status = session_open(s);
    const bool runs = n->out[0].count > 0; /* an empty output is there already */
    if (status == STRATA_OK && runs)
        status = session_run(s, session_patterns[0]);
    for (int i = 0; i < s->node.n_out && status == STRATA_OK; i++)
        session_read(s, i, out[i]);
    if (status == STRATA_OK && !n->plain)
        status = session_inspect(s, session_patterns[0]);
    if (status == STRATA_OK && !n->plain && !n->in_place && runs)
        status = run_again(s, out);
    if (n->phase)
        memcpy(phase, n->phase, sizeof phase);
    session_close(s);
    harness_enter(n, phase); /* what is found now is not of what ran since */
    n->fault = s->fault;
    n->err = s->err;
    session_free(s);
    free(s);
    return status;
}
