/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that came to mean another thing, or got another name.
 */
#include "network/import/upgrade.h"

#include <string.h>
#include <strings.h>

#include "core/alloc.h"

/* ---- softmax and its kin -------------------------------------------------------------
 */

/* The one axis from `axis` on along which there is more than one element: -1: there are
 * several. */
static int64_t only_axis(const int64_t *dims, int rank, int64_t axis)
{
    int64_t only = rank - 1;
    int n = 0;
    for (int64_t d = axis; d < rank; d++)
        if (dims[d] != 1) {
            only = d;
            n++;
        }
    return n > 1 ? -1 : only;
}

/* Operators that worked along all dims from `axis` on, taken as one: of a value of all
 * rounds (rounds/), of those that a round has. */
static void flatten_axes(struct import *im, struct node *n)
{
    const struct value *x = upgrade_input(im, n, 0);
    int64_t axis = node_integer(n, "axis", 1), flat[2] = {1, 1}, dims[STRATA_MAX_RANK];
    if (!x)
        return;
    const int before = x->lane ? 1 : 0, rank = x->rank - before;
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis > rank) {
        import_refuse_node(im, n, NULL, "axis %lld is not one of a rank of %d",
                           (long long)axis, rank);
        return;
    }
    const int64_t only = axis < rank ? only_axis(x->dims + before, rank, axis) : -1;
    node_set_integer(&im->g, n, "axis", only >= 0 ? only : -1);
    if (only >= 0)
        return;
    for (int d = 0; d < rank; d++) {
        dims[d] = x->dims[before + d];
        flat[d >= axis] *= dims[d];
    }
    node_set_input(&im->g, n, 0, upgrade_reshape(im, n, n->in[0], 2, flat));
    struct node *back = upgrade_after(im, n, 0, "Reshape");
    if (back)
        node_set_input(&im->g, back, 1, graph_add_integers(&im->g, 1, dims, rank));
    node_set_integer(&im->g, back, "allowzero", 1);
}

/* ---- normalization -------------------------------------------------------------------
 */

static void refuse_planes(struct import *im, struct node *n)
{
    if (node_integer(n, "spatial", 1) == 0)
        import_refuse_node(im, n, NULL,
                           "'spatial' is 0, statistics of each element; only those of "
                           "channels are taken");
    node_remove(n, "spatial");
}

/* Only training made more than the first output. */
static void refuse_statistics(struct import *im, struct node *n)
{
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0 && im->g.values[n->out[i]].readers)
            import_refuse_node(im, n, NULL,
                               "output %d is read, which only training makes", i);
    n->n_out = n->n_out > 1 ? 1 : n->n_out;
}

/* ---- resize --------------------------------------------------------------------------
 */

/* Sizes were told in attributes. */
static void upsample_scales(struct import *im, struct node *n)
{
    double *scales = arena_get(&im->g.arena, 4, sizeof *scales);
    if (!scales)
        return;
    scales[0] = scales[1] = 1;
    scales[2] = node_real(n, "height_scale", 1);
    scales[3] = node_real(n, "width_scale", 1);
    node_set(&im->g, n,
             (struct onnx_attribute){
                 .name = "scales", .kind = ONNX_A_REALS, .reals = scales, .n = 4});
    if (strcmp(node_text(n, "mode", "nearest"), "bilinear") == 0)
        node_set_text(&im->g, n, "mode", "linear");
}

static void upsample_to_resize(struct import *im, struct node *n)
{
    (void)im;
    n->op = "Resize";
}

/* The corners of pixels were aligned, and the pixel before a point was the nearest. */
static void resize_corners(struct import *im, struct node *n)
{
    node_set_text(&im->g, n, "coordinate_transformation_mode", "asymmetric");
    node_set_text(&im->g, n, "nearest_mode", "floor");
    if (n->n_in < 2)
        return;
    node_set_input(&im->g, n, 2, n->in[1]);
    n->in[1] = VALUE_NONE;
}

/* ---- others --------------------------------------------------------------------------
 */

/* Cast named its type. */
static void cast_code(struct import *im, struct node *n)
{
    static const char *const names[ONNX_TYPE_COUNT] = {[ONNX_FLOAT] = "FLOAT",
                                                       [ONNX_UINT8] = "UINT8",
                                                       [ONNX_INT8] = "INT8",
                                                       [ONNX_UINT16] = "UINT16",
                                                       [ONNX_INT16] = "INT16",
                                                       [ONNX_INT32] = "INT32",
                                                       [ONNX_INT64] = "INT64",
                                                       [ONNX_STRING] = "STRING",
                                                       [ONNX_BOOL] = "BOOL",
                                                       [ONNX_FLOAT16] = "FLOAT16",
                                                       [ONNX_DOUBLE] = "DOUBLE",
                                                       [ONNX_UINT32] = "UINT32",
                                                       [ONNX_UINT64] = "UINT64",
                                                       [ONNX_COMPLEX64] = "COMPLEX64",
                                                       [ONNX_COMPLEX128] = "COMPLEX128"};
    const char *to = node_text(n, "to", "");
    for (int i = 0; i < ONNX_TYPE_COUNT; i++)
        if (names[i] && strcasecmp(names[i], to) == 0) {
            node_set_integer(&im->g, n, "to", i);
            return;
        }
    if (*to)
        import_refuse_node(im, n, NULL, "'to' = '%s' is no type", to);
}

static void concat_axis(struct import *im, struct node *n)
{
    if (!node_attribute(n, "axis"))
        node_set_integer(&im->g, n, "axis", 1);
}

/* Constants of fewer digits. */
static void selu_digits(struct import *im, struct node *n)
{
    const double alpha = node_real(n, "alpha", (double)1.6732f);
    const double gamma = node_real(n, "gamma", (double)1.0507f);
    node_set(
        &im->g, n,
        (struct onnx_attribute){.name = "alpha", .kind = ONNX_A_REAL, .real = alpha});
    node_set(
        &im->g, n,
        (struct onnx_attribute){.name = "gamma", .kind = ONNX_A_REAL, .real = gamma});
}

/* The norm's order was a float. */
static void norm_order(struct import *im, struct node *n)
{
    const double p = node_real(n, "p", 2);
    if (p != (double)(int64_t)p)
        import_refuse_node(im, n, NULL, "'p' = %g is not whole", p);
    else
        node_set_integer(&im->g, n, "p", (int64_t)p);
}

static void sample_modes(struct import *im, struct node *n)
{
    const char *mode = node_text(n, "mode", "bilinear");
    if (strcmp(mode, "bilinear") == 0)
        node_set_text(&im->g, n, "mode", "linear");
    else if (strcmp(mode, "bicubic") == 0)
        node_set_text(&im->g, n, "mode", "cubic");
}

static void roi_corners(struct import *im, struct node *n)
{
    node_set_text(&im->g, n, "coordinate_transformation_mode", "output_half_pixel");
}

static void scatter_elements(struct import *im, struct node *n)
{
    (void)im;
    n->op = "ScatterElements";
}

static int pick_first(struct import *im, const struct node *n, int value)
{
    const int64_t first = 0;
    const int in[] = {value, graph_add_integers(&im->g, 0, &first, 1)};
    return upgrade_value(upgrade_add(im, n, "Gather", in, 2));
}

/* Each input had the batch first, and behind the first input, the lengths of its
 * sequences. */
static void scan_batch(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const int64_t front = 0;
    const int own = n->n_in - n->n_captured;
    struct onnx_attribute directions;
    const struct onnx_attribute *a = node_attribute(n, "directions");
    for (int i = 1; i < own; i++) {
        const struct value *v = upgrade_input(im, n, i);
        if (v && v->rank > 0 && v->dims[0] == 1 && n->in[0] < 0)
            continue;
        import_refuse_node(im, n, NULL,
                           "opset 8's batch must be 1, its sequences of one length; a "
                           "newer exporter writes Scan without them");
        return;
    }
    for (int i = 1; i < n->n_in; i++)
        n->in[i - 1] = i < own ? pick_first(im, n, n->in[i]) : n->in[i];
    n->n_in--;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            node_set_input(g, upgrade_after(im, n, i, "Unsqueeze"), 1,
                           graph_add_integers(g, 1, &front, 1));
    if (!a)
        return;
    directions = *a;
    directions.name = "scan_input_directions";
    node_set(g, n, directions);
}

static const struct upgrade rows[] = {
    {"Softmax", {13}, flatten_axes},
    {"LogSoftmax", {13}, flatten_axes},
    {"Hardmax", {13}, flatten_axes},
    {"BatchNormalization", {9}, refuse_planes},
    {"BatchNormalization", {14}, refuse_statistics},
    {"Upsample", {7}, upsample_scales},
    {"Upsample", {10}, upsample_to_resize},
    {"Resize", {11}, resize_corners},
    {"Cast", {6}, cast_code},
    {"Concat", {4}, concat_axis},
    {"Selu", {6}, selu_digits},
    {"LpPool", {2}, norm_order},
    {"GlobalLpPool", {2}, norm_order},
    {"GridSample", {20}, sample_modes},
    {"RoiAlign", {16}, roi_corners},
    {"Scatter", {11}, scatter_elements},
    {"Scan", {9}, scan_batch},
};

const struct upgrade_table upgrade_meaning = {rows, ARRAY_LENGTH(rows)};
