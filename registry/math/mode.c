/* SPDX-License-Identifier: Apache-2.0
 *
 * The modes' names; what of a mode is told to a plugin.
 */
#include "registry/math/mode.h"

#include <string.h>

static const char *const names[] = {
    [STRATA_MATH_DEFAULT] = "default",
    [STRATA_MATH_TENSOR_OP] = "tensor_op",
    [STRATA_MATH_TF32] = "tf32",
};
enum { MODES = sizeof names / sizeof names[0] };

const char *math_name(int mode)
{
    return names[mode >= 0 && mode < MODES ? mode : STRATA_MATH_DEFAULT];
}

bool math_from_name(const char *name, int *mode)
{
    for (int m = 0; m < MODES; m++)
        if (strcmp(name, names[m]) == 0) {
            *mode = m;
            return true;
        }
    return false;
}

int math_join(int a, int b)
{
    return a > b ? a : b;
}

void math_tell(strata_node *node, int mode)
{
    node->math =
        mode == STRATA_MATH_DEFAULT ? STRATA_MATH_DEFAULT : STRATA_MATH_TENSOR_OP;
    node->tf32 = mode == STRATA_MATH_TF32;
}

int math_of(const strata_node *node)
{
    return node->tf32 ? STRATA_MATH_TF32 : node->math;
}
