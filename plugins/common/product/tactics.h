/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer's tactics by hopper.cuh's products: HOPPER_EACH, which the including file
 * defines, names their tiles; here they get numbers, and callbacks without a number.
 * PRODUCT_CALLBACKS makes the latter of any such list.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TACTICS_H
#define PLUGINS_COMMON_PRODUCT_TACTICS_H

#include <strata/plugin.h>

#ifdef HOPPER_EACH
enum {
#define HOPPER_NUMBER(name) HOPPER_##name,
    HOPPER_EACH(HOPPER_NUMBER)
#undef HOPPER_NUMBER
        HOPPER_TACTICS
};

int hopper_accept(const strata_node *n, int tactic);
int hopper_setup(const strata_node *n, void *state, int tactic);
int hopper_run(const strata_run *r, int tactic);
#endif

#define PRODUCT_CALLBACKS(family, number, name)                                          \
    static int family##_##name##_accept(const strata_node *n)                            \
    {                                                                                    \
        return family##_accept(n, number##name);                                         \
    }                                                                                    \
    static int family##_##name##_setup(const strata_node *n, void *state)                \
    {                                                                                    \
        return family##_setup(n, state, number##name);                                   \
    }                                                                                    \
    static int family##_##name##_run(const strata_run *r)                                \
    {                                                                                    \
        return family##_run(r, number##name);                                            \
    }

/* HOPPER_EACH(HOPPER_CALLBACKS): what a table of impls names. */
#define HOPPER_CALLBACKS(name) PRODUCT_CALLBACKS(hopper, HOPPER_, name)

#endif /* PLUGINS_COMMON_PRODUCT_TACTICS_H */
