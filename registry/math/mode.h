/* SPDX-License-Identifier: Apache-2.0
 *
 * Math modes, in one place: their names and their order. A mode allows what the ones
 * before it do, so that of two wishes the later mode holds.
 */
#ifndef REGISTRY_MATH_MODE_H
#define REGISTRY_MATH_MODE_H

#include <stdbool.h>

#include <strata/plugin.h>

#define MATH_MODES "default|tensor_op|tf32" /* names, by STRATA_MATH_* */

/* "default" for what is no mode. */
const char *math_name(int mode);
/* False where it is no mode's name. */
bool math_from_name(const char *name, int *mode);
/* What allows all that either does. */
int math_join(int a, int b);
/* Tell a plugin. One that was built before there was `tf32` reads tensor_op. */
void math_tell(strata_node *node, int mode);
/* What was told. */
int math_of(const strata_node *node);

#endif /* REGISTRY_MATH_MODE_H */
