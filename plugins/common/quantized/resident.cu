/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes with weights that stay in shared memory: which there are, what they
 * take, how many blocks of one share a multiprocessor.
 */
#include "plugins/common/quantized/resident_kernel.cuh"

#define RESIDENT_MOST 232448
#define RESIDENT_OF_ALL 233472 /* of a multiprocessor; 1024 of each block are its own */
#define RESIDENT_BOX 256       /* pixels of a side of what the copy engine brings */

template <class C>
static const product_launch resident_launch_of = {
    .kernel = (const void *)resident_kernel<C>,
    .rows = C::Rows,
    .columns = C::Columns,
    .threads = C::Threads,
    .bytes = RESIDENT_MOST,
    .depth = C::Row,
    .box = 64,
    .panel = 64,
    .pair = 0,
    .splits = 0,
    .blocks = RESIDENT_BLOCKS,
};

#define TILE(...) &resident_launch_of<resident_tile<__VA_ARGS__>>

/* By channels: 65 and more, up to 64. */
static const product_launch *const launches[RESIDENT_TILES][2] = {
    [RESIDENT_64x128] = {TILE(2, 1, 128, false), TILE(2, 1, 64, false)},
    [RESIDENT_128x64] = {TILE(1, 2, 128, false), TILE(1, 2, 64, false)},
    [RESIDENT_PATCH] = {NULL, TILE(1, 2, 64, true)},
};

const product_launch *resident_launch(int tile, const quantized_shape &s)
{
    return launches[tile][s.in_stored <= 64];
}

/* ---- patches --------------------------------------------------------------------- */

static int64_t side_of(const struct window *w, int d)
{
    return RESIDENT_SIDE + window_extent(w, d) - 1;
}

/* Bytes of a patch. */
static int64_t box_of(const struct window *w, const product_launch &l)
{
    return side_of(w, 1) * side_of(w, 2) * l.depth;
}

static int64_t whole_box_of(const struct window *w, const product_launch &l)
{
    return (box_of(w, l) + 1023) / 1024 * 1024;
}

static const char *patch_refusal(const quantized_shape &s)
{
    const struct window *w = &s.w;
    if (w->stride[1] != 1 || w->stride[2] != 1)
        return "patches are for strides of 1";
    if (window_kernel_count(w) == 1)
        return "a kernel of one element needs no patch";
    if (side_of(w, 1) > RESIDENT_BOX || side_of(w, 2) > RESIDENT_BOX)
        return "a patch is at most 256 pixels a side";
    return NULL;
}

/* Of a job that has its m. */
static bool map_patches(resident_job *job, const windows_input &x, const struct window *w,
                        const product_launch &l)
{
    const int64_t across = (w->out[2] + RESIDENT_SIDE - 1) / RESIDENT_SIDE;
    const int64_t down = (w->out[1] + RESIDENT_SIDE - 1) / RESIDENT_SIDE;
    const int64_t images = x.images * w->in[0];
    const uint64_t dims[4] = {(uint64_t)x.channels, (uint64_t)w->in[2],
                              (uint64_t)w->in[1], (uint64_t)images};
    const int64_t strides[3] = {x.pitch, x.pitch * w->in[2],
                                x.pitch * w->in[2] * w->in[1]};
    const uint32_t box[4] = {(uint32_t)l.depth, (uint32_t)side_of(w, 2),
                             (uint32_t)side_of(w, 1), 1};
    const int64_t row = side_of(w, 2) * l.depth, step = w->dilation[2] * l.depth;
    resident_patch &p = job->patch;
    p.across = divisor_of(across);
    p.patches = divisor_of(across * down);
    p.height = (int32_t)w->out[1];
    p.width = (int32_t)w->out[2];
    p.begin_h = (int32_t)w->begin[1];
    p.begin_w = (int32_t)w->begin[2];
    p.kernel_w = (int32_t)w->kernel[2];
    p.group = (int32_t)row;
    p.step_w = (int32_t)step / 16;
    p.down = (int32_t)(w->dilation[1] * row - w->kernel[2] * step) / 16;
    p.room = (int32_t)whole_box_of(w, l);
    job->units = (int32_t)((across * down * images * 64 + l.rows - 1) / l.rows);
    return tensor_map_boxes(&job->a, x.data, x.dtype, 4, dims, strides, box,
                            strides[2] * images);
}

bool resident_map(resident_job *job, int tile, const windows_input &x,
                  const struct window *w, const product_launch &l)
{
    if (tile == RESIDENT_PATCH)
        return map_patches(job, x, w, l);
    job->units = (job->m + l.rows - 1) / l.rows;
    return windows_map(job, x, w, l);
}

/* Bytes of a block before its weights, and room to begin at a multiple of 1024. */
static int64_t kept_of(const product_launch &l)
{
    return resident_before(l.columns, l.threads) + 1024;
}

/* ---- a multiprocessor's blocks --------------------------------------------------- */

/* Stages of a block's ring, bytes each. */
struct resident_room {
    int64_t blocks, stages, stage;
};

/* As many blocks as have room for what is next beside what is multiplied. */
static resident_room room_of(int tile, const product_launch &l, const struct window *w,
                             int64_t steps)
{
    const bool patch = tile == RESIDENT_PATCH;
    const int64_t least = patch ? 2 : steps < 3 ? steps + 1 : 4;
    const int64_t kept = kept_of(l) + steps * l.columns * l.depth;
    resident_room r = {l.blocks, 0, l.rows * l.depth};
    if (patch)
        r.stage = l.rows / 64 * whole_box_of(w, l);
    for (; r.blocks > 0; r.blocks--) {
        const int64_t room = RESIDENT_OF_ALL / r.blocks - 1024;
        r.stages = room < kept ? 0 : (room - kept) / r.stage;
        if (r.stages >= least)
            break;
    }
    r.stages = r.stages < RESIDENT_STAGES ? r.stages : RESIDENT_STAGES;
    return r;
}

/* Of one element, without pads; perhaps every second. */
static bool are_pixels(const struct window *w)
{
    bool pads = false;
    for (int d = 1; d < WINDOW_DIMS; d++)
        pads |= w->begin[d] != 0 || (w->out[d] - 1) * w->stride[d] >= w->in[d];
    return window_kernel_count(w) == 1 && !pads;
}

const char *resident_refusal(int tile, const quantized_shape &s, const product_launch &l)
{
    const int64_t pieces = windows_pieces(s.in_stored, l.depth);
    const char *why = tile == RESIDENT_PATCH ? patch_refusal(s)
                      : are_pixels(&s.w)     ? NULL
                                             : "windows are for others";
    if (why)
        return why;
    return room_of(tile, l, &s.w, pieces * window_kernel_count(&s.w)).blocks == 0
               ? "its weights do not stay in shared memory"
               : NULL;
}

/* What follows for each unit of a job that has its `by`. */
static void resident_spread(resident_job *job, int tile, const product_launch &l)
{
    const bool patch = tile == RESIDENT_PATCH;
    job->origin = job->backwards ? job->units - 1 : 0;
    job->sign = job->backwards ? -1 : 1;
    job->step = job->sign * job->by * l.rows;
    job->to_step = job->step * job->to_row;
    job->apart = (patch ? job->patch.width : RESIDENT_SIDE) * job->to_row;
    job->flip = job->addend_unsigned ? 0 : QUANTIZED_FLIP;
    job->most = quick_most(job->quick);
    if (job->addend)
        job->beside = (int64_t)((uintptr_t)job->addend - (uintptr_t)job->to);
    job->ahead = job->beside + RESIDENT_ADDENDS * job->to_step;
}

cudaError_t resident_run(resident_job *job, int tile, const struct window *w,
                         const product_launch &l, int32_t multiprocessors,
                         cudaStream_t stream)
{
    const resident_room room = room_of(tile, l, w, job->steps);
    const int32_t pieces = tile == RESIDENT_PATCH ? 1 : job->steps;
    product_launch of = l;
    job->stages = (int32_t)room.stages;
    job->late = room.stages >= 2 * pieces;
    job->rest = room.stages >= 3 * pieces ? pieces : 0;
    job->stage = (int32_t)room.stage;
    job->expected =
        (int32_t)(tile == RESIDENT_PATCH ? l.rows / 64 * box_of(w, l) : room.stage);
    job->column_tiles = (job->n + l.columns - 1) / l.columns;
    const int64_t most = room.blocks * multiprocessors / job->column_tiles;
    job->by = (int32_t)(most < 1 ? 1 : most < job->units ? most : job->units);
    resident_spread(job, tile, l);
    of.bytes = (int32_t)(kept_of(l) + job->steps * l.columns * l.depth +
                         room.stages * room.stage);
    return launch_clusters(*job, of, 1, (int64_t)job->by * job->column_tiles, stream);
}
