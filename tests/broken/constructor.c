/* SPDX-License-Identifier: Apache-2.0
 * A good module whose constructor does what -DCONSTRUCTOR says.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../examples/plugins/leaky_relu/leaky_relu.c"

__attribute__((constructor)) static void construct(void)
{
    int *volatile nowhere = NULL;
    (void)nowhere;
    CONSTRUCTOR;
}
