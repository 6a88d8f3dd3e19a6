/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run leaves, as values, to be compared with what another one leaves; and which
 * trial was the last.
 */
#ifndef CHECK_TEST_RESULTS_H
#define CHECK_TEST_RESULTS_H

#include "check/harness/trial.h"

struct results {
    void *out[HARNESS_OUTPUTS];
};

void results_free(struct results *r);
/* False: no memory. */
bool results_read(struct results *r, const struct session *s);
/* The first element that differs in its bits, as text; false: none. */
bool results_differ(const struct results *a, const struct results *b,
                    const struct session *s, char *text, size_t size);
/* Runs of this trial's impl may be compared: it says that they are the same. */
bool results_exact(const struct trial *t);

/* What was tried last: one combination of each impl and shape is enough where each takes
 * long. */
struct seen {
    const struct registry_impl *impl;
    char shapes[192];
};
bool seen_before(const struct seen *last, const struct trial *t);
void mark_seen(struct seen *last, const struct trial *t);

#endif /* CHECK_TEST_RESULTS_H */
