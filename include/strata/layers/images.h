/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that sample images and choose parts of them: Resize, GridSample, RoiAlign and
 * NonMaxSuppression.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_IMAGES_H
#define STRATA_LAYERS_IMAGES_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STRATA_NEAREST = 0,
    STRATA_BILINEAR = 1,
    STRATA_RESIZE_LINEAR = 2, /* the same as bilinear, which is for two dims */
    STRATA_RESIZE_CUBIC = 3
};
enum {
    STRATA_HALF_PIXEL = 0,
    STRATA_ASYMMETRIC = 1,
    STRATA_ALIGN_CORNERS = 2,
    STRATA_PYTORCH_HALF_PIXEL = 3,
    STRATA_HALF_PIXEL_SYMMETRIC = 4,
    STRATA_TF_CROP_AND_RESIZE = 5
};
enum {
    STRATA_ROUND_BY_COORDINATES = 0, /* floor if asymmetric, else prefer_floor */
    STRATA_ROUND_PREFER_FLOOR = 1,
    STRATA_ROUND_PREFER_CEIL = 2,
    STRATA_ROUND_FLOOR = 3,
    STRATA_ROUND_CEIL = 4
};
enum {
    STRATA_ASPECT_STRETCH = 0,
    STRATA_ASPECT_NOT_LARGER = 1,
    STRATA_ASPECT_NOT_SMALLER = 2
};
/* Resize of `axes` (the spatial dims when empty): to `size`, by `scale`
 * (out = floor(in*scale)), or to the dims `like` of a second input. */
typedef struct strata_resize {
    int32_t mode;
    int32_t coordinates;
    strata_ints size;
    strata_reals scale;
    strata_ints axes;
    int32_t nearest;     /* STRATA_ROUND_* */
    int32_t keep_aspect; /* STRATA_ASPECT_*, with size */
    double cubic_a;
    strata_reals roi; /* begins of all axes, then ends, 0 to 1; tf_crop_and_resize */
    double extrapolation;
    int32_t antialias;
    int32_t exclude_outside;
    strata_ints like; /* dims of the second input, one for each axis */
} strata_resize;

enum { STRATA_GRID_LINEAR = 0, STRATA_GRID_NEAREST = 1, STRATA_GRID_CUBIC = 2 };
enum { STRATA_GRID_ZEROS = 0, STRATA_GRID_BORDER = 1, STRATA_GRID_REFLECTION = 2 };
/* GridSample: input data (N, C, spatial), then grid (N, spatial of the output, dims), from
 * -1 to 1, the last dim of the data first. */
typedef struct strata_grid_sample {
    int32_t mode;
    int32_t padding;
    int32_t align_corners;
    int32_t reserved;
} strata_grid_sample;

enum { STRATA_ROI_AVERAGE = 0, STRATA_ROI_MAX = 1 };
enum { STRATA_ROI_HALF_PIXEL = 0, STRATA_ROI_OUTPUT_HALF_PIXEL = 1 };
/* RoiAlign: inputs data (N, C, H, W), regions (R, 4: x1 y1 x2 y2), and the image of each
 * (R; i32, i64). */
typedef struct strata_roi_align {
    strata_ints size; /* of the output, one for both dims or one each */
    int32_t mode;
    int32_t coordinates;
    int64_t sampling; /* points of a bin per dim; 0: as many as it has elements */
    double scale;     /* from coordinates of regions to elements */
} strata_roi_align;

enum { STRATA_BOX_CORNERS = 0, STRATA_BOX_CENTER = 1 };
/* NonMaxSuppression: inputs boxes (B, S, 4) and scores (B, C, S); outputs indices (M, 3:
 * image, class, box; M = B*C*min(max_output, S), unused rows -1) and their count (1). */
typedef struct strata_non_max_suppression {
    int64_t max_output; /* of a class of an image */
    double iou, score;
    int32_t box; /* corners y1 x1 y2 x2, or center x y width height */
    int32_t reserved;
} strata_non_max_suppression;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_IMAGES_H */
