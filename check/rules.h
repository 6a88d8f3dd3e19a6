/* SPDX-License-Identifier: Apache-2.0
 *
 * What the contract asks, rule by rule. A finding names one.
 */
#ifndef CHECK_RULES_H
#define CHECK_RULES_H

struct check_rule {
    const char *id;
    const char *contract; /* one sentence */
};

/* Never NULL: an id without an entry gives one that says so. */
const struct check_rule *check_rule(const char *id);

#endif /* CHECK_RULES_H */
