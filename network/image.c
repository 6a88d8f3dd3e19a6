/* SPDX-License-Identifier: Apache-2.0
 *
 * An image as the values of a network's input, as its section says.
 */
#include "network/network.h"

int network_image(float *values, const strata_network *net,
                  const struct network_input *in, const struct image *im,
                  strata_error *err)
{
    const struct network_tensor *t = &net->tensors[in->tensor];
    if (t->rank != 4 || (t->dims[1] != 1 && t->dims[1] != 3) || t->dims[2] > INT32_MAX ||
        t->dims[3] > INT32_MAX)
        return error_set(err, STRATA_EINVAL,
                         "an image needs an input of N x 1 x H x W or N x 3 x H x W; "
                         "'%s' is not",
                         in->name);
    if (t->dtype == STRATA_BOOL8 || t->dtype == STRATA_INT64)
        return error_set(err, STRATA_EINVAL,
                         "input '%s' is %s: truth values or indices, which an image has "
                         "not; give a .npy file",
                         in->name, strata_dtype_name(t->dtype));
    return image_to_tensor(values, (int)t->dims[1], (int)t->dims[2], (int)t->dims[3], im,
                           &in->transform, err);
}
