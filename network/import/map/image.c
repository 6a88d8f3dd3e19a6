/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of images: sizes, places and regions.
 */
#include "network/import/map/compose.h"

#include <string.h>

#include "core/alloc.h"

/* ---- resize ---------------------------------------------------------------------------
 */

struct resize {
    int n; /* axes */
    int64_t axes[STRATA_MAX_RANK], sizes[STRATA_MAX_RANK];
    double scales[STRATA_MAX_RANK], begin[STRATA_MAX_RANK], end[STRATA_MAX_RANK];
    bool has_sizes;
};

static bool read_axes(struct mapping *m, struct resize *r, int rank)
{
    r->n = map_integers(m, "axes", -1, r->axes);
    if (r->n < 0)
        for (r->n = 0; r->n < rank; r->n++)
            r->axes[r->n] = r->n;
    for (int k = 0; k < r->n; k++)
        r->axes[k] = map_axis(m, r->axes[k], rank);
    return !m->refused;
}

static bool read_sizes(struct mapping *m, struct resize *r)
{
    const bool crops = strcmp(node_text(m->node, "coordinate_transformation_mode", ""),
                              "tf_crop_and_resize") == 0;
    const struct value *roi = map_constant(m, 1, "roi");
    const struct value *scales = map_constant(m, 2, "scales");
    const struct value *sizes = map_constant(m, 3, "sizes");
    r->has_sizes = sizes && value_count(sizes) > 0;
    if (m->refused)
        return false;
    if (!r->has_sizes && !(scales && value_count(scales) > 0)) {
        map_refuse(m, "there are neither 'scales' nor 'sizes'");
        return false;
    }
    if (value_count(r->has_sizes ? sizes : scales) != r->n) {
        map_refuse(m, "'%s' has %lld numbers for %d axes",
                   r->has_sizes ? "sizes" : "scales",
                   (long long)value_count(r->has_sizes ? sizes : scales), r->n);
        return false;
    }
    if (crops && (!roi || value_count(roi) != 2 * r->n)) {
        map_refuse(m, "'roi' does not have two numbers an axis");
        return false;
    }
    for (int k = 0; k < r->n; k++) {
        r->sizes[k] = r->has_sizes ? value_integer(sizes, k) : 0;
        r->scales[k] = r->has_sizes ? 0 : value_real(scales, k);
        r->begin[k] = crops ? value_real(roi, k) : 0;
        r->end[k] = crops ? value_real(roi, r->n + k) : 1;
    }
    return true;
}

/* Axes along which nothing happens are not named. */
static void leave_out(struct resize *r, const struct value *x)
{
    int kept = 0;
    for (int k = 0; k < r->n; k++) {
        const bool same =
            r->has_sizes ? r->sizes[k] == x->dims[r->axes[k]] : r->scales[k] == 1;
        if (same && r->begin[k] == 0 && r->end[k] == 1)
            continue;
        r->axes[kept] = r->axes[k];
        r->sizes[kept] = r->sizes[k];
        r->scales[kept] = r->scales[k];
        r->begin[kept] = r->begin[k];
        r->end[kept++] = r->end[k];
    }
    r->n = kept;
}

/* tf_half_pixel_for_nn was half_pixel plus a half, whose rounding is another one of the
 * place without it. */
static const char *nearest_of_half(struct mapping *m, bool nearest_only,
                                   const char *nearest)
{
    if (nearest_only && strcmp(nearest, "floor") == 0)
        return "round_prefer_ceil";
    if (nearest_only && strcmp(nearest, "round_prefer_floor") == 0)
        return "ceil";
    map_refuse(m,
               "'coordinate_transformation_mode' = 'tf_half_pixel_for_nn' is taken with "
               "nearest_mode floor and round_prefer_floor alone");
    return nearest;
}

static void set_places(struct mapping *m, const struct resize *r)
{
    double roi[2 * STRATA_MAX_RANK];
    const char *places =
        node_text(m->node, "coordinate_transformation_mode", "half_pixel");
    const char *nearest = node_text(m->node, "nearest_mode", "round_prefer_floor");
    const bool nearest_only =
        strcmp(node_text(m->node, "mode", "nearest"), "nearest") == 0;
    if (strcmp(places, "tf_half_pixel_for_nn") == 0) {
        places = "half_pixel";
        nearest = nearest_of_half(m, nearest_only, nearest);
    }
    section_word(m->g, m->s, "coordinates", places);
    if (nearest_only)
        section_word(m->g, m->s, "nearest", nearest);
    if (strcmp(places, "tf_crop_and_resize") != 0)
        return;
    memcpy(roi, r->begin, (size_t)r->n * sizeof *roi);
    memcpy(roi + r->n, r->end, (size_t)r->n * sizeof *roi);
    section_reals(m->g, m->s, "roi", roi, 2 * r->n);
}

/* Attributes of m->s. */
static void set_resize(struct mapping *m, const struct resize *r, const char *mode,
                       const char *policy)
{
    section_word(m->g, m->s, "mode", mode);
    section_integers(m->g, m->s, "axes", r->axes, r->n);
    if (r->has_sizes)
        section_integers(m->g, m->s, "size", r->sizes, r->n);
    else
        section_reals(m->g, m->s, "scale", r->scales, r->n);
    if (r->has_sizes)
        section_word(m->g, m->s, "keep_aspect", policy);
    set_places(m, r);
    map_names(m, "antialias=antialias?,cubic_coeff_a=cubic_a,"
                 "exclude_outside=exclude_outside?,extrapolation_value=extrapolation");
}

static void map_resize(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    const char *mode = node_text(m->node, "mode", "nearest");
    const char *policy = node_text(m->node, "keep_aspect_ratio_policy", "stretch");
    struct resize r = {0};
    if (!x || !read_axes(m, &r, x->rank) || !read_sizes(m, &r))
        return;
    if (!r.has_sizes || strcmp(policy, "stretch") == 0)
        leave_out(&r, x);
    if (r.n == 0) {
        map_is(m, 0, compose_input(m, 0));
        return;
    }
    if (graph_is_real(x->dtype) || strcmp(mode, "nearest") == 0) {
        map_section(m, "Resize");
        map_in(m, 0);
        map_out(m, 0);
        set_resize(m, &r, mode, policy);
        return;
    }
    /* What is between integers is computed in floats, and its fraction cut off. */
    const int y =
        compose_one(m, "Resize", compose_cast(m, compose_input(m, 0), STRATA_FP32));
    set_resize(m, &r, mode, policy);
    compose_cast(m, y, x->dtype);
    compose_end(m, 0, -1);
}

/* ---- places ---------------------------------------------------------------------------
 */

/* Both spellings of the interpolations: opset 20 renamed them. */
static void finish_grid(struct mapping *m)
{
    const char *mode = node_text(m->node, "mode", "linear");
    section_word(m->g, m->s, "mode",
                 strcmp(mode, "bilinear") == 0  ? "linear"
                 : strcmp(mode, "bicubic") == 0 ? "cubic"
                                                : mode);
}

/* Places of an output's elements, last dim first, and 1: a row each. */
static int base_grid(struct mapping *m, const int64_t *size, int space, bool corners)
{
    int64_t n = 1, dims[2] = {1, space + 1};
    double *v = compose_room(m, (size_t)(space + 1) * sizeof *v, size, space);
    for (int d = 0; v && d < space; d++)
        n *= size[d];
    for (int64_t i = 0; v && i < n; i++) {
        int64_t rest = i;
        for (int d = space - 1; d >= 0; rest /= size[d], d--) {
            const double at = (double)(rest % size[d]), all = (double)size[d];
            v[i * (space + 1) + space - 1 - d] =
                corners ? (all == 1 ? 0 : 2 * at / (all - 1) - 1)
                        : (2 * at + 1) / all - 1;
        }
        v[i * (space + 1) + space] = 1;
    }
    dims[0] = n;
    return v ? compose_reals(m, 2, dims, v) : VALUE_NONE;
}

static void map_affine_grid(struct mapping *m)
{
    const struct value *theta = map_input(m, 0);
    int64_t size[STRATA_MAX_RANK], dims[STRATA_MAX_RANK];
    const int n = map_integers(m, "size", 1, size);
    const int space = n - 2;
    if (m->refused)
        return;
    if (!theta || theta->rank != 3 || space < 2 || space > 3 || theta->dims[1] != space ||
        theta->dims[2] != space + 1) {
        map_refuse(m, "'theta' is not N x 2 x 3 for a size of 4, or N x 3 x 4 for 5");
        return;
    }
    for (int d = 0; d < space; d++)
        dims[d + 1] = size[d + 2];
    dims[0] = theta->dims[0];
    dims[space + 1] = space;
    const int grid =
        base_grid(m, size + 2, space, node_integer(m->node, "align_corners", 0) != 0);
    const int y = compose_two(m, "MatrixMultiply", grid, compose_input(m, 0));
    section_flag(m->g, m->s, "transpose_b", true);
    compose_is(m, 0, y, space + 2, dims);
}

static void finish_roi(struct mapping *m)
{
    const int64_t size[] = {node_integer(m->node, "output_height", 1),
                            node_integer(m->node, "output_width", 1)};
    section_integers(m->g, m->s, "size", size, 2);
    section_word(m->g, m->s, "coordinates",
                 node_text(m->node, "coordinate_transformation_mode", "half_pixel"));
}

/* The count of the boxes stays behind: the rest of the rows is -1 (counted/). */
static void finish_suppression(struct mapping *m)
{
    if (map_input(m, 2))
        map_constant(m, 2, "max_output_boxes_per_class");
    if (node_integer(m->node, "center_point_box", 0))
        section_word(m->g, m->s, "box", "center");
    if (!map_input(m, 2))
        section_integer(m->g, m->s, "max_output", 0);
}

/* ---- blocks that overlap --------------------------------------------------------------
 */

/* For each channel, as many filters as a block has elements, each of one element. */
static int one_each(struct mapping *m, int64_t channels, int64_t taps, int space,
                    const int64_t *block)
{
    int64_t dims[STRATA_MAX_RANK] = {channels * taps, 1};
    double *v = compose_room(m, sizeof *v, (const int64_t[]){channels, taps, taps}, 3);
    for (int d = 0; d < space; d++)
        dims[d + 2] = block[d];
    for (int64_t i = 0; v && i < channels * taps; i++)
        v[i * taps + i % taps] = 1;
    return v ? compose_reals(m, space + 2, dims, v) : VALUE_NONE;
}

/* Numbers of an attribute, one a spatial dim, or its default. */
static void read_space(struct mapping *m, const char *name, int n, int64_t otherwise,
                       int64_t least, int64_t *out)
{
    const int64_t found = node_integers(m->node, name, out, 2 * STRATA_MAX_RANK);
    for (int d = 0; d < n && found < 0; d++)
        out[d] = otherwise;
    if (found >= 0 && found != n)
        map_refuse(m, "'%s' has %lld numbers, %d are needed", name, (long long)found, n);
    else
        compose_fits(m, name, out, n, least);
}

/* Blocks that are summed where they overlap: a transposed convolution. */
static void map_col_to_image(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    int64_t image[STRATA_MAX_RANK], block[STRATA_MAX_RANK], more[STRATA_MAX_RANK];
    int64_t stride[2 * STRATA_MAX_RANK], dilation[2 * STRATA_MAX_RANK];
    int64_t pads[2 * STRATA_MAX_RANK], dims[STRATA_MAX_RANK], taps = 1;
    const int n = map_integers(m, "image_shape", 1, image);
    const int same = map_integers(m, "block_shape", 2, block);
    if (!x || m->refused)
        return;
    if (x->rank != 3 || n < 1 || n > 3 || same != n) {
        map_refuse(m, "the input is not N x C·block x L, of 1 to 3 spatial dims");
        return;
    }
    read_space(m, "strides", n, 1, 1, stride);
    read_space(m, "dilations", n, 1, 1, dilation);
    read_space(m, "pads", 2 * n, 0, 0, pads);
    if (!compose_fits(m, "block_shape", block, n, 1) ||
        !compose_fits(m, "image_shape", image, n, 1) || m->refused)
        return;
    for (int d = 0; d < n && taps <= x->dims[1]; d++)
        taps *= block[d];
    if (taps > x->dims[1] || x->dims[1] % taps != 0) {
        map_refuse(m, "%lld rows are not divided by the block's elements",
                   (long long)x->dims[1]);
        return;
    }
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int d = 0; d < n; d++) {
        const int64_t span = (block[d] - 1) * dilation[d] + 1;
        const int64_t room = image[d] + pads[d] + pads[n + d] - span;
        if (room < 0) {
            map_refuse(m, "a block is larger than the image");
            return;
        }
        dims[d + 2] = room / stride[d] + 1;
        more[d] = room % stride[d];
    }
    const int64_t channels = x->dims[1] / taps;
    const int y = compose_reshape(m, compose_input(m, 0), n + 2, dims);
    compose_one(m, "Deconvolution", y);
    section_weight(m->s, "weight", one_each(m, channels, taps, n, block));
    section_integer(m->g, m->s, "groups", channels);
    section_integers(m->g, m->s, "stride", stride, n);
    section_integers(m->g, m->s, "dilation", dilation, n);
    section_integers(m->g, m->s, "pad", pads, 2 * n);
    section_integers(m->g, m->s, "output_pad", more, n);
    compose_end(m, 0, -1);
}

static const struct map_rule rules[] = {
    {.op = "Resize",
     .finish = map_resize,
     .note = "constant scales, sizes and roi; at most 3 axes but for nearest"},
    {.op = "GridSample",
     .layer = "GridSample",
     .ports = "xx",
     .names = "padding_mode=padding,align_corners=align_corners?",
     .finish = finish_grid,
     .note = "2 and 3 spatial dims; cubic of 2"},
    {.op = "AffineGrid", .finish = map_affine_grid, .note = "constant size"},
    {.op = "RoiAlign",
     .layer = "RoiAlign",
     .ports = "xxx",
     .names = "mode=mode,sampling_ratio=sampling,spatial_scale=scale",
     .finish = finish_roi},
    {.op = "NonMaxSuppression",
     .layer = "NonMaxSuppression",
     .ports = "xx---",
     .names = "#2=max_output,#3=iou,#4=score",
     .finish = finish_suppression,
     .note = "as many rows as there may be; those that are not used are -1"},
    {.op = "Col2Im",
     .finish = map_col_to_image,
     .note = "constant image_shape and block_shape"},
};

const struct map_table map_image = {"Images", rules, ARRAY_LENGTH(rules)};
