/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as an image and as an IDX file. Images are resized in each
 * way; the limits are small so that time goes into parsing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "io/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct image_limits limits = {
    .side = 256, .pixels = 16384, .bytes = 1 << 20};

static void use(const struct image *im)
{
    float values[3 * 5 * 7];
    struct image_transform t = image_identity;
    for (int resize = IMAGE_STRETCH; resize <= IMAGE_LETTERBOX; resize++) {
        t.resize = (enum image_resize)resize;
        if (image_to_tensor(values, 3, 5, 7, im, &t, NULL) != STRATA_OK)
            abort();
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            if (!(values[i] >= 0 && values[i] <= 255))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    strata_error err = {0};
    struct image im;
    struct idx idx;
    int status = image_parse(&im, data, size, "fuzz", &limits, &err);
    if (status != err.status || (status == STRATA_OK) != (im.pixels != NULL))
        abort();
    if (im.pixels)
        use(&im);
    image_free(&im);
    if ((idx_parse(&idx, data, size, "fuzz", NULL) == STRATA_OK) != (idx.data != NULL))
        abort();
    idx_free(&idx);
    return 0;
}
