/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer's tactics by hopper.cuh's products: HOPPER_EACH, which the including file
 * defines, names their tiles; here they get numbers, and callbacks without a number.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TACTICS_H
#define PLUGINS_COMMON_PRODUCT_TACTICS_H

#include <strata/plugin.h>

enum {
#define HOPPER_NUMBER(name) HOPPER_##name,
    HOPPER_EACH(HOPPER_NUMBER)
#undef HOPPER_NUMBER
        HOPPER_TACTICS
};

int hopper_accept(const strata_node *n, int tactic);
int hopper_setup(const strata_node *n, void *state, int tactic);
int hopper_run(const strata_run *r, int tactic);

/* HOPPER_EACH(HOPPER_CALLBACKS): what a table of impls names. */
#define HOPPER_CALLBACKS(name)                                                           \
    static int hopper_##name##_accept(const strata_node *n)                              \
    {                                                                                    \
        return hopper_accept(n, HOPPER_##name);                                          \
    }                                                                                    \
    static int hopper_##name##_setup(const strata_node *n, void *state)                  \
    {                                                                                    \
        return hopper_setup(n, state, HOPPER_##name);                                    \
    }                                                                                    \
    static int hopper_##name##_run(const strata_run *r)                                  \
    {                                                                                    \
        return hopper_run(r, HOPPER_##name);                                             \
    }

#endif /* PLUGINS_COMMON_PRODUCT_TACTICS_H */
