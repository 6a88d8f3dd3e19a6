/* SPDX-License-Identifier: Apache-2.0
 *
 * GridSample: the input at coordinates that a grid gives, in any float format. The taps
 * of a tile of output pixels are worked out once and serve all channels.
 */
#include "plugins/grid_sample/grid_sample.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include "plugins/common/dense.h"
#include "plugins/common/pointwise/taps.h"
#include "plugins/common/walk.h"

#define TILE 64       /* pixels */
#define ENTRIES 16384 /* of a block's tables: a corner of a pixel each */
#define LANES 64 /* channels that lie side by side, at most at once */

static int64_t threads_most(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* ---- shape ----------------------------------------------------------------------- */

static int grid_shape(const strata_node *n)
{
    const strata_grid_sample *p = n->params;
    const strata_tensor *x = &n->in[0], *grid = &n->in[1];
    const int32_t dims = x->rank - 2;
    if (x->rank < 4 || x->rank > 5 || (p->mode == STRATA_GRID_CUBIC && x->rank != 4))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input has rank %d; 4 and 5 are allowed, in mode cubic 4",
                           (int)x->rank);
    if (grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
        grid->dims[x->rank - 1] != dims)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "the grid has rank %d, %lld images and %lld coordinates; needed "
            "are %d, %lld and %d",
            (int)grid->rank, (long long)grid->dims[0],
            (long long)grid->dims[grid->rank - 1], (int)x->rank, (long long)x->dims[0],
            (int)dims);
    n->out[0].rank = x->rank;
    n->out[0].dims[0] = x->dims[0];
    n->out[0].dims[1] = x->dims[1];
    for (int32_t d = 2; d < x->rank; d++) {
        n->out[0].dims[d] = grid->dims[d - 1];
        if (x->dims[d] == 0)
            return STRATA_FAIL(n, STRATA_EINVAL, "dim %d has no elements to sample",
                               (int)d);
    }
    return STRATA_OK;
}

static double grid_flops(const strata_node *n)
{
    const strata_grid_sample *p = n->params;
    return 2 * pow(grid_count(p->mode), n->in[0].rank - 2) * (double)n->out[0].count;
}

/* ---- running --------------------------------------------------------------------- */

/* A tile's taps: offsets from the channel of the image; weight 0: nothing to read. Taps
 * that are neighbours in memory are patches, in their order: row and patch, which lie
 * where the others do. */
struct tile {
    int32_t corners;
    int32_t has_patches, has_zeros;
    int64_t (*at)[TILE], *row;
    float (*weight)[TILE], *patch;
};

/* Tables of the tiles of a block. */
struct tables {
    int64_t at[ENTRIES];
    float weight[ENTRIES];
    struct tile tile[ENTRIES / TILE];
};

/* Taps of a tile along one dim: offsets, and weights, 0 beyond the border. */
struct along {
    int64_t at[GRID_TAPS][TILE];
    float weight[GRID_TAPS][TILE];
};

/* n coordinates `step` apart. The mode and the padding are constants here, so that it is
 * vector code where padding takes no division. */
ROW_INLINE void take_along(struct along *a, const float *coordinate, int64_t step,
                           int64_t n, int64_t size, int64_t stride, int32_t mode,
                           int32_t padding, int32_t align)
{
    for (int64_t j = 0; j < n; j++) {
        const struct grid_taps t =
            grid_taps((double)coordinate[j * step], size, mode, padding, align);
        for (int32_t k = 0; k < grid_count(mode); k++) {
            a->at[k][j] = (t.index[k] < 0 ? 0 : t.index[k]) * stride;
            a->weight[k][j] = t.index[k] < 0 ? 0 : (float)t.weight[k];
        }
    }
}

ROW_INLINE void take_along_padded(struct along *a, const float *coordinate, int64_t step,
                                  int64_t n, int64_t size, int64_t stride, int32_t mode,
                                  int32_t padding, int32_t align)
{
    if (padding == STRATA_GRID_ZEROS)
        take_along(a, coordinate, step, n, size, stride, mode, STRATA_GRID_ZEROS, align);
    else if (padding == STRATA_GRID_BORDER)
        take_along(a, coordinate, step, n, size, stride, mode, STRATA_GRID_BORDER, align);
    else
        take_along(a, coordinate, step, n, size, stride, mode, STRATA_GRID_REFLECTION,
                   align);
}

/* A corner is a tap of each dim: tap k of this one to the `corners` of those before. */
ROW_INLINE void take_corners(struct tile *t, const struct along *a, int32_t corners,
                             int32_t k, int64_t n)
{
    for (int32_t c = 0; c < corners; c++)
        for (int64_t j = 0; j < n; j++) {
            t->at[k * corners + c][j] = t->at[c][j] + a->at[k][j];
            t->weight[k * corners + c][j] = t->weight[c][j] * a->weight[k][j];
        }
}

ROW_INLINE void take_points(const strata_run *r, const float *grid, struct tile *t,
                            int64_t n, int32_t mode)
{
    const strata_grid_sample *p = r->params;
    const strata_tensor *x = &r->in[0];
    const int32_t dims = x->rank - 2, taps = grid_count(mode);
    struct along a;
    t->corners = 1;
    for (int64_t j = 0; j < n; j++) {
        t->at[0][j] = 0;
        t->weight[0][j] = 1;
    }
    for (int32_t d = 0; d < dims; d++) {
        take_along_padded(&a, grid + dims - 1 - d, dims, n, x->dims[2 + d],
                          x->strides[2 + d], mode, p->padding, p->align_corners);
        for (int32_t k = taps - 1; k >= 0; k--)
            take_corners(t, &a, t->corners, k, n);
        t->corners *= taps;
    }
}

/* Pixel j if its four taps along the row are neighbours, as away from a border. */
ROW_INLINE int take_inside(struct tile *t, const struct along *h, const struct along *w,
                           int64_t j)
{
    const int64_t first = w->at[0][j];
    if (w->at[1][j] != first + 1 || w->at[2][j] != first + 2 || w->at[3][j] != first + 3)
        return 0;
    for (int k = 0; k < 4; k++)
        t->row[j * 4 + k] = h->at[k][j] + first;
    t->has_zeros |= patch_products(t->patch + j * 16, &h->weight[0][j], &w->weight[0][j],
                                   TILE);
    return 1;
}

/* Pixel j: its rows, each a window of neighbours. */
ROW_INLINE void take_patch(struct tile *t, const struct along *h, const struct along *w,
                           int64_t j, int64_t size, int32_t taps)
{
    if (taps == 4 && take_inside(t, h, w, j))
        return;
    float window[GRID_TAPS], weight[GRID_TAPS];
    int64_t at[GRID_TAPS];
    for (int32_t k = 0; k < taps; k++) {
        at[k] = w->at[k][j];
        weight[k] = w->weight[k][j];
    }
    const int64_t first = patch_window(window, at, weight, taps, size);
    for (int32_t k = 0; k < taps; k++) {
        t->row[j * taps + k] = h->at[k][j] + first;
        for (int32_t i = 0; i < taps; i++) {
            const float value = h->weight[k][j] * window[i];
            t->patch[(j * taps + k) * taps + i] = value;
            t->has_zeros |= value == 0;
        }
    }
}

ROW_INLINE void take_patches(const strata_run *r, const float *grid, struct tile *t,
                             int64_t n, int32_t mode)
{
    const strata_grid_sample *p = r->params;
    const strata_tensor *x = &r->in[0];
    struct along h, w;
    t->has_zeros = 0;
    take_along_padded(&h, grid + 1, 2, n, x->dims[2], x->strides[2], mode, p->padding,
                      p->align_corners);
    take_along_padded(&w, grid, 2, n, x->dims[3], 1, mode, p->padding, p->align_corners);
    for (int64_t j = 0; j < n; j++)
        take_patch(t, &h, &w, j, x->dims[3], grid_count(mode));
}

ROW_INLINE void take_mode(const strata_run *r, const float *grid, struct tile *t,
                          int64_t n, int32_t mode)
{
    if (mode != STRATA_GRID_NEAREST && t->has_patches)
        take_patches(r, grid, t, n, mode);
    else
        take_points(r, grid, t, n, mode);
}

/* n pixels, whose coordinates lie behind each other. */
ROW_INLINE void take_pixels(const strata_run *r, const float *grid, struct tile *t,
                            int64_t n)
{
    const strata_grid_sample *p = r->params;
    if (p->mode == STRATA_GRID_NEAREST)
        take_mode(r, grid, t, n, STRATA_GRID_NEAREST);
    else if (p->mode == STRATA_GRID_LINEAR)
        take_mode(r, grid, t, n, STRATA_GRID_LINEAR);
    else
        take_mode(r, grid, t, n, STRATA_GRID_CUBIC);
}

/* All calls inside become code of the target, so that roundings are instructions. */
typedef void take_function(const strata_run *r, const float *grid, struct tile *t,
                           int64_t n);
#define GRID_CODE(name, target)                                                          \
    target __attribute__((flatten)) static void take_##name(                             \
        const strata_run *r, const float *grid, struct tile *t, int64_t n)               \
    {                                                                                    \
        take_pixels(r, grid, t, n);                                                      \
    }

GRID_CODE(plain, )
#ifdef ELEMENT_X86
GRID_CODE(avx2, __attribute__((target("avx2,fma"))))
GRID_CODE(avx512, ROW_AVX512)
#endif

/* One channel of a tile: n pixels `step` apart in the output. */
static void sample_channel(const strata_run *r, const struct taps_code *code,
                           const struct tile *t, int64_t from, int64_t to, int64_t step,
                           int64_t n)
{
    const strata_grid_sample *p = r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int cubic = p->mode == STRATA_GRID_CUBIC;
    const struct taps taps = {t->at[0], t->weight[0], t->corners, TILE};
    const struct patches patches = {t->row, t->patch, cubic ? 4 : 1, cubic, t->has_zeros};
    float buffer[TILE], *sum = walk_target(y, to, step, buffer);
    if (t->has_patches)
        code->patches(sum, &patches, (const float *)x->data + from, n);
    else if (x->dtype == STRATA_FP32)
        code->sum(sum, &taps, (const float *)x->data + from, n);
    else
        for (int64_t j = 0; j < n; j++) {
            sum[j] = 0;
            for (int32_t c = 0; c < t->corners; c++)
                if (t->weight[c][j] != 0)
                    sum[j] += t->weight[c][j] *
                              element_load(x->data, x->dtype, from + t->at[c][j]);
        }
    walk_stored(y, to, step, sum, buffer, n);
}

/* Channels that lie side by side, of each pixel of a tile. */
static void sample_lanes(const strata_run *r, const struct tile *t, int64_t from,
                         int64_t to, int64_t step, int64_t n, int64_t lanes)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    float sum[LANES], buffer[LANES];
    for (int64_t j = 0; j < n; j++) {
        for (int64_t l = 0; l < lanes; l++)
            sum[l] = 0;
        for (int32_t c = 0; c < t->corners; c++) {
            const float weight = t->weight[c][j];
            if (weight == 0)
                continue;
            const float *row = walk_load(x, from + t->at[c][j], 1, lanes, buffer);
            for (int64_t l = 0; l < lanes; l++)
                sum[l] += weight * row[l];
        }
        element_store_row(y->data, y->dtype, to + j * step, 1, sum, lanes);
    }
}

/* Channels side by side in memory. */
static int64_t lanes_of(const strata_tensor *t)
{
    const int64_t lanes = t->vector_dim == 1 && t->vector > 1 ? t->vector
                          : t->strides[1] == 1                ? t->dims[1]
                                                              : 1;
    return lanes < LANES ? lanes : LANES;
}

/* Whether taps of a row are neighbours in memory. */
static int has_patches(const strata_run *r, int64_t lanes)
{
    const strata_grid_sample *p = r->params;
    const strata_tensor *x = &r->in[0];
    return x->dtype == STRATA_FP32 && x->rank == 4 && lanes == 1 && x->strides[3] == 1 &&
           p->mode != STRATA_GRID_NEAREST && x->dims[3] >= grid_count(p->mode);
}

/* Channels [c, c + live) of a tile that begins at pixel `begin`. */
static void sample_tile(const strata_run *r, const struct tile *t, int64_t image,
                        int64_t begin, int64_t n, int64_t c, int64_t lanes)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int64_t live = y->dims[1] - c < lanes ? y->dims[1] - c : lanes;
    const int64_t step = y->strides[y->rank - 1], from = element_channel(x, image, c);
    const int64_t to = element_channel(y, image, c) + begin * step;
    if (lanes == 1)
        sample_channel(r, taps_choose(), t, from, to, step, n);
    else
        sample_lanes(r, t, from, to, step, n, live);
}

static int64_t tile_pixels(int64_t begin, int64_t end)
{
    return end - begin < TILE ? end - begin : TILE;
}

static int64_t corners_of(const strata_run *r)
{
    const strata_grid_sample *p = r->params;
    int64_t corners = 1;
    for (int32_t d = 2; d < r->in[0].rank; d++)
        corners *= grid_count(p->mode);
    return corners;
}

/* Tables of pixels [begin, end) of an image. */
static void make_tables(const strata_run *r, struct tables *t, int64_t image,
                        int64_t begin, int64_t end)
{
    const strata_tensor *y = &r->out[0];
    const int32_t dims = y->rank - 2;
    const int64_t pixels = index_count(y, 2, y->rank), each = corners_of(r) * TILE;
    const float *grid = (const float *)r->in[1].data + image * pixels * dims;
    const int patches = has_patches(r, lanes_of(y));
    take_function *take = ROW_BEST(take);
    for (int64_t i = begin, k = 0; i < end; i += TILE, k++) {
        struct tile *tile = &t->tile[k];
        tile->has_patches = patches;
        tile->row = t->at + k * each;
        tile->patch = t->weight + k * each;
        tile->at = (int64_t(*)[TILE])tile->row;
        tile->weight = (float(*)[TILE])tile->patch;
        take(r, grid + i * dims, tile, tile_pixels(i, end));
    }
}

/* Pixels [begin, end) of an image: channel by channel, which caches hold meanwhile. */
static void sample_block(const strata_run *r, int64_t image, int64_t begin, int64_t end)
{
    const strata_tensor *y = &r->out[0];
    const int64_t lanes = lanes_of(y);
    struct tables t;
    make_tables(r, &t, image, begin, end);
    for (int64_t c = 0; c < y->dims[1]; c += lanes)
        for (int64_t i = begin, k = 0; i < end; i += TILE, k++)
            sample_tile(r, &t.tile[k], image, i, tile_pixels(i, end), c, lanes);
}

/* As large as blocks can be while all threads have equally many, of one size. */
static int64_t block_pixels(const strata_run *r, int64_t images, int64_t pixels)
{
    const int64_t each = (images * pixels + threads_most() - 1) / threads_most();
    const int64_t tiles = (each + TILE - 1) / TILE;
    const int64_t most = ENTRIES / TILE / corners_of(r);
    const int64_t rounds = (tiles + most - 1) / most;
    return (tiles + rounds - 1) / rounds * TILE;
}

static int grid_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    const int64_t pixels = index_count(y, 2, y->rank);
    const int64_t each = block_pixels(r, y->dims[0], pixels);
    const int64_t blocks = (pixels + each - 1) / each;
#pragma omp parallel for schedule(static) if (y->count >= WALK_PARALLEL / 4)
    for (int64_t i = 0; i < y->dims[0] * blocks; i++) {
        const int64_t begin = i % blocks * each;
        sample_block(r, i / blocks, begin, pixels - begin < each ? pixels : begin + each);
    }
    walk_clear_pads(y);
    return STRATA_OK;
}

/* ---- reference ------------------------------------------------------------------- */

static double exact_sample(const strata_node *n, const double *in, const double *grid,
                           const int64_t *index)
{
    const strata_grid_sample *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t dims = x->rank - 2, taps = grid_count(p->mode);
    struct grid_taps along[GRID_DIMS];
    int64_t combinations = 1;
    double sum = 0;
    for (int32_t d = 0; d < dims; d++) {
        along[d] = grid_taps(grid[dims - 1 - d], x->dims[2 + d], p->mode, p->padding,
                             p->align_corners);
        combinations *= taps;
    }
    for (int64_t m = 0; m < combinations; m++) {
        int64_t at[STRATA_MAX_RANK] = {index[0], index[1]}, rest = m;
        double weight = 1;
        for (int32_t d = 0; d < dims; d++) {
            at[2 + d] = along[d].index[rest % taps];
            weight *= at[2 + d] < 0 ? 0 : along[d].weight[rest % taps];
            rest /= taps;
        }
        if (weight != 0)
            sum += weight * in[dense_offset(x, at)];
    }
    return sum;
}

static int grid_reference(const strata_node *n, const void *const *in,
                          const void *const *weight, void *const *out)
{
    const strata_tensor *y = &n->out[0];
    const int32_t dims = y->rank - 2;
    const int64_t count = dense_count(y), pixels = index_count(y, 2, y->rank);
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        int64_t at[STRATA_MAX_RANK];
        dense_index(y, i, at);
        const double *grid = (const double *)in[1] + (at[0] * pixels + i % pixels) * dims;
        ((double *)out[0])[i] = exact_sample(n, in[0], grid, at);
    }
    return STRATA_OK;
}

/* A NaN coordinate counts as -1. */
static const void *grid_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     grid_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "mode",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_grid_sample, mode),
     .def = STRATA_GRID_LINEAR,
     .choices = "linear|nearest|cubic",
     .doc = "interpolation; nearest rounds halves to even"},
    {.name = "padding",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_grid_sample, padding),
     .def = STRATA_GRID_ZEROS,
     .choices = "zeros|border|reflection",
     .doc = "what lies outside of the input"},
    {.name = "align_corners",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_grid_sample, align_corners),
     .doc = "-1 and 1 are the centres of the border's elements, not their outer edges"},
};

static const strata_row rows[] = {{{WALK_FLOATS, STRATA_F32_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.03,
     .bandwidth = 0.2,
     .run = grid_run},
};

static const strata_layer grid_sample = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "GridSample",
    .doc = "The input at coordinates that a grid gives",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_grid_sample),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = grid_shape,
    .flops = grid_flops,
    .extension = grid_extension,
};

static const strata_layer *const layers[] = {&grid_sample};
STRATA_MODULE("core", "1.0.0", "GridSample", layers)
