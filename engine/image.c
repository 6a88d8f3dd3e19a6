/* SPDX-License-Identifier: Apache-2.0
 *
 * Images into rows of an engine's inputs, as the network's sections say, and the names of
 * its classes. An engine from a file has both: they are in its network's text.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arguments.h"
#include "engine/engine.h"

/* Where an image goes. */
struct target {
    const struct network_input *input;
    strata_desc row, linear; /* one row: in the binding's format, dense FP32 */
};

static int find_target(struct target *t, const strata_engine *e, int index,
                       strata_error *err)
{
    const struct execution *x = e->execution;
    if (index < 0 || index >= (int)x->n_inputs)
        return error_set(err, STRATA_EINVAL, "input %d: there are %zu", index,
                         x->n_inputs);
    const struct execution_value *v = &x->values[x->bindings[index].value];
    const struct format *format = format_at(v->format);
    int64_t dims[STRATA_MAX_RANK];
    memcpy(dims, v->desc.dims, sizeof dims);
    dims[0] = 1;
    t->input = network_find_input(e->network, x->bindings[index].name);
    if (format->order == ORDER_BATCH && v->desc.dims[0] > 1)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "'%s' is bound as %s, where rows are not in one piece each",
                         x->bindings[index].name,
                         format_mask_name(UINT64_C(1) << v->format, v->desc.rank));
    int status = format_desc(&t->row, *format, dims, v->desc.rank, err);
    return status != STRATA_OK
               ? status
               : format_desc(&t->linear, (struct format){STRATA_FP32, ORDER_LINEAR, 1},
                             dims, v->desc.rank, err);
}

static int convert(const strata_engine *e, int index, void *row, const struct image *im,
                   strata_error *err)
{
    struct target t;
    int status = find_target(&t, e, index, err);
    if (status != STRATA_OK)
        return status;
    float *values =
        zalloc((size_t)strata_desc_count(&t.linear), sizeof *values, t.input->name, err);
    if (!values)
        return STRATA_ENOMEM;
    status = network_image(values, e->network, t.input, im, err);
    if (status == STRATA_OK)
        status = strata_reformat(&t.row, row, &t.linear, values, err);
    free(values);
    return status;
}

int strata_engine_read_image(const strata_engine *e, int index, void *row,
                             const char *path, strata_error *err)
{
    struct image im;
    int status = ARGUMENTS(err, {"engine", e}, {"row", row}, {"path", path});
    if (status == STRATA_OK)
        status = image_read(&im, path, NULL, err);
    if (status != STRATA_OK)
        return status;
    status = convert(e, index, row, &im, err);
    error_prefix(err, "%s", path);
    image_free(&im);
    return status;
}

static int check_image(const strata_image *im, strata_error *err)
{
    const int side = image_default_limits.side;
    if (!im->pixels)
        return error_set(err, STRATA_EINVAL, "strata_image.pixels is NULL");
    if (im->channels != 1 && im->channels != 3)
        return error_set(err, STRATA_EINVAL,
                         "an image of %d channels; needed 1 (grey) or 3 (RGB)",
                         im->channels);
    if (im->width < 1 || im->height < 1 || im->width > side || im->height > side)
        return error_set(err, STRATA_EINVAL,
                         "an image of %d x %d pixels; each side needs 1 to %d", im->width,
                         im->height, side);
    if (im->stride && im->stride < (int64_t)im->width * im->channels)
        return error_set(err, STRATA_EINVAL,
                         "strata_image.stride is %" PRId64
                         "; a row of %d pixels has %" PRId64 " bytes",
                         im->stride, im->width, (int64_t)im->width * im->channels);
    return STRATA_OK;
}

/* Rows without what lies between them; the caller's. */
static uint8_t *pack_rows(const strata_image *im, strata_error *err)
{
    const size_t row = (size_t)im->width * (size_t)im->channels;
    uint8_t *packed = zalloc((size_t)im->height, row, "an image", err);
    for (int y = 0; packed && y < im->height; y++)
        memcpy(packed + (size_t)y * row, im->pixels + y * im->stride, row);
    return packed;
}

int strata_engine_convert_image(const strata_engine *e, int index, void *row,
                                const strata_image *image, strata_error *err)
{
    strata_image known;
    uint8_t *packed = NULL;
    int status = ARGUMENTS(err, {"engine", e}, {"row", row}, {"image", image});
    if (status == STRATA_OK)
        status = struct_check(image->struct_size, SIZE_THROUGH(strata_image, stride),
                              "strata_image", err);
    if (status != STRATA_OK)
        return status;
    struct_take(&known, sizeof known, image, image->struct_size);
    if ((status = check_image(&known, err)) != STRATA_OK)
        return status;
    if (known.stride > (int64_t)known.width * known.channels &&
        !(packed = pack_rows(&known, err)))
        return STRATA_ENOMEM;
    const struct image im = {.pixels = packed ? packed : (uint8_t *)known.pixels,
                             .width = known.width,
                             .height = known.height,
                             .channels = known.channels};
    status = convert(e, index, row, &im, err);
    free(packed);
    return status;
}

int64_t strata_engine_labels(const strata_engine *e)
{
    return e ? (int64_t)e->network->n_labels : 0;
}

const char *strata_engine_label(const strata_engine *e, int64_t index)
{
    return e && index >= 0 && (uint64_t)index < e->network->n_labels
               ? e->network->labels[index]
               : NULL;
}
