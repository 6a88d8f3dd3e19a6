/* SPDX-License-Identifier: Apache-2.0
 *
 * How the device's reformat cuts tensors into slabs, without a device: its jobs are
 * carried out here, element by element, and must give what the host's reformat gives,
 * from aligned accesses that stay inside both tensors.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "formats/reformat/reformat.h"
#include "kernels/reformat/reformat.h"
#include "kernels/reformat/job.h"

#define ZEROS 32 /* as in kernels/reformat/slab.cu */
#define MOST_STAGE (26 * 1024 + 256)
#define ROOM ((size_t)4 << 20)

static struct {
    const char *src;
    char *dst;
    size_t src_bytes, dst_bytes;
    const char *fault; /* what a job did wrong */
} bench;

static int forms[BYTES_SPREAD + 1]; /* launches of each */

/* ---- the other kernels are not launched here --------------------------------------- */

int reformat_launch_runs(const struct reformat_runs *j, int to, int from, void *stream)
{
    (void)j, (void)to, (void)from, (void)stream;
    return 1;
}

int reformat_launch_pixel(const struct reformat_pixel *j, int to, int from, void *stream)
{
    (void)j, (void)to, (void)from, (void)stream;
    return 1;
}

int reformat_launch_zip(const struct reformat_zip *j, int to, int from, void *stream)
{
    (void)j, (void)to, (void)from, (void)stream;
    return 1;
}

int reformat_launch_tile(const struct reformat_tile *j, int to, int from, void *stream)
{
    (void)j, (void)to, (void)from, (void)stream;
    return 1;
}

int reformat_launch_any(const struct reformat_any *j, void *stream)
{
    (void)j, (void)stream;
    return 1;
}

/* ---- slabs, as kernels/reformat/slab.cu moves them --------------------------------- */

static uint32_t divide(uint32_t x, struct reformat_divisor d)
{
    return d.d == 1 ? x : (uint32_t)(((uint64_t)x * d.magic) >> 32);
}

static int64_t tile_start(const struct reformat_slab *j,
                          const struct reformat_slab_side *s, uint32_t tile)
{
    const uint32_t channel = tile % j->channel_tiles, rest = tile / j->channel_tiles;
    const uint32_t first = rest % j->pixel_tiles * j->pixels.d;
    const uint32_t pixel = first < j->last_pixel ? first : j->last_pixel;
    return rest / j->pixel_tiles * s->image_step + pixel * s->pixel_step +
           channel * s->tile_step;
}

/* The tile's bytes as they lie in shared memory, from its first on. */
static void fetch(const struct reformat_slab *j, const char *src, char *stage)
{
    const char *end = bench.src + bench.src_bytes;
    const uint32_t skew = j->end ? (uint32_t)((uintptr_t)src % 16) : 0;
    const uint32_t pieces = j->end ? (skew + j->bytes + 15) / 16 : j->from.pieces;
    if ((size_t)(pieces - (skew > 0)) * 16 + ZEROS > j->stage || j->stage > MOST_STAGE)
        bench.fault = "a tile does not fit its stage";
    for (uint32_t i = 0; i < pieces && !bench.fault; i++) {
        const uint32_t row = divide(i, j->from.row);
        const char *from =
            j->end ? src - skew + i * 16
                   : src + row * j->from.row_step + (i - row * j->from.row.d) * 16;
        const char *stop =
            j->end && (const char *)j->end < from + 16 ? (const char *)j->end : from + 16;
        if ((uintptr_t)from % 16 != 0 || from < bench.src || stop > end || stop <= from)
            bench.fault = "a read is misaligned or outside the source";
        else if (j->end && i == 0)
            memcpy(stage, from + skew, (size_t)(stop - from) - skew);
        else
            memcpy(stage + i * 16 - skew, from, (size_t)(stop - from));
    }
}

/* Bytes of what a job calls an element. */
static uint32_t element_bytes(const struct reformat_slab *j, int type)
{
    return j->form == BYTES_WORDS    ? 4
           : j->form == BYTES_PIECES ? 16
                                     : (uint32_t)strata_dtype_size(type);
}

static float load(const char *p, int type)
{
    float x;
    uint16_t half;
    memcpy(&half, p, sizeof half);
    if (type == STRATA_FP16)
        return half_to_float(half);
    memcpy(&x, p, sizeof x);
    return x;
}

static void store(char *p, int type, float x)
{
    const uint16_t half = half_from_float(x);
    if (type == STRATA_FP16)
        memcpy(p, &half, sizeof half);
    else
        memcpy(p, &x, sizeof x);
}

static void move_element(const struct reformat_slab *j, const char *stage, uint32_t index,
                         char *to)
{
    const size_t from_size = element_bytes(j, j->from_type);
    const uint32_t vector = divide(index, j->to.lanes), row = divide(vector, j->pixels);
    const uint32_t image = divide(row, j->to.blocks);
    const uint32_t pixel = vector - row * j->pixels.d;
    const uint32_t c =
        (row - image * j->to.blocks.d) * j->to.lanes.d + (index - vector * j->to.lanes.d);
    const uint32_t block = j->from.blocks.d > 1 ? divide(c, j->from.lanes) : 0;
    const uint32_t at =
        ((image * j->from.blocks.d + block) * j->pixels.d + pixel) * j->from.lanes.d + c -
        block * j->from.lanes.d;
    const char *from = stage + at * from_size;
    if (c >= j->channels)
        memset(to, 0, element_bytes(j, j->to_type));
    else if (j->to_type == j->from_type)
        memcpy(to, from, from_size);
    else
        store(to, j->to_type, load(from, j->from_type));
    for (size_t i = 0; from_size > 2 && j->form >= BYTES_WORDS && i < from_size; i++)
        if (c + 1 == j->channels)
            to[i] = (char)((uint8_t)to[i] & (j->tail[i / 4] >> i % 4 * 8));
}

/* `count` neighbours in memory, from element `index` of the tile on, in its own order. */
static void move_run(const struct reformat_slab *j, const char *stage, uint32_t index,
                     uint32_t count, char *to)
{
    const uint32_t size = element_bytes(j, j->to_type);
    if ((uintptr_t)to % (count * size) != 0 || to < bench.dst ||
        to + count * size > bench.dst + bench.dst_bytes)
        bench.fault = "a write is misaligned or outside the destination";
    for (uint32_t e = 0; e < count && !bench.fault; e++)
        move_element(j, stage, index + e, to + e * size);
}

static void make_piece(const struct reformat_slab *j, const char *stage, uint32_t piece,
                       char *dst)
{
    const uint32_t n = 16 / element_bytes(j, j->to_type);
    const uint32_t row = divide(piece, j->to.row);
    move_run(j, stage, piece * n, n,
             dst + row * j->to.row_step + (piece - row * j->to.row.d) * 16);
}

/* Four pixels of eight planes, the n-th of a part of the tile. */
static void make_planes(const struct reformat_slab *j, const char *stage, uint32_t part,
                        uint32_t n, char *dst)
{
    const uint32_t size = (uint32_t)strata_dtype_size(j->to_type);
    const uint32_t quad = n % j->quads.d, c = n / j->quads.d * 8;
    const uint32_t first = part * j->items / j->quads.d * 8;
    if ((uintptr_t)dst % 16 != 0 || j->out % 16 != 0)
        bench.fault = "a part is misaligned";
    for (uint32_t l = 0; l < 8; l++)
        move_run(j, stage, (first + c + l) * j->pixels.d + quad * 4, 4,
                 dst + part * j->out + (c + l) * j->stride + quad * 4 * size);
}

/* Four pixels of eight lanes. */
static void make_lanes(const struct reformat_slab *j, const char *stage, uint32_t quad,
                       uint32_t eight, char *dst)
{
    for (uint32_t p = 0; p < 4; p++)
        move_run(j, stage, (quad * 4 + p) * j->to.lanes.d + eight * 8, 8,
                 dst + (quad * 4 + p) * j->stride + eight * 16);
}

static void make_item(const struct reformat_slab *j, const char *stage, uint32_t n,
                      char *dst)
{
    if (j->form == SLAB_WEAVE)
        make_lanes(j, stage, n / j->eights.d, n % j->eights.d, dst);
    else if (j->form >= SLAB_UNWEAVE)
        for (int part = 0; part < j->held; part++)
            make_planes(j, stage, (uint32_t)part, n, dst);
    else
        make_piece(j, stage, n, dst);
}

static void make_tiles(const struct reformat_slab *j,
                       void make(const struct reformat_slab *j, const char *stage,
                                 uint32_t n, char *dst))
{
    static char stage[MOST_STAGE];
    for (uint32_t tile = 0; tile < j->tiles && !bench.fault; tile++) {
        fetch(j, (const char *)j->src + tile_start(j, &j->from, tile), stage);
        for (uint32_t i = 0; i < j->items && !bench.fault; i++)
            make(j, stage, i, (char *)j->dst + tile_start(j, &j->to, tile));
    }
}

int reformat_launch_slab(const struct reformat_slab *j, void *stream)
{
    const uint32_t most = j->form == SLAB_GATHER
                              ? (uint32_t)j->held * REFORMAT_SLAB_THREADS
                              : REFORMAT_QUAD_THREADS;
    const uint32_t held = j->form >= SLAB_UNWEAVE ? 1 : (uint32_t)j->held;
    (void)stream;
    forms[j->form]++;
    if (j->threads % 32 != 0 || j->threads > most || j->threads * held < j->items)
        bench.fault = "threads do not hold the tile";
    if (j->form != SLAB_GATHER &&
        (j->end || j->pixels.d % 4 != 0 || j->last_pixel % 4 != 0))
        bench.fault = "four pixels do not lie together";
    make_tiles(j, make_item);
    return 0;
}

/* ---- bytes, as kernels/reformat/bytes.cu moves them -------------------------------- */

/* Bytes at a place in the copy of the destination's tile that leaves by rows. */
static void send(const struct reformat_slab *j, char *dst, uint32_t at, const char *bytes,
                 uint32_t count)
{
    const uint32_t row = at / j->row_bytes;
    char *to = dst + row * j->to.row_step + (at - row * j->row_bytes);
    if (at + count > j->rows * j->row_bytes || j->rows * j->row_bytes + 16 > j->out)
        bench.fault = "a write is outside the tile";
    else if (j->rows > 1 && (((uintptr_t)dst | (uintptr_t)j->to.row_step) % 16 != 0 ||
                             j->row_bytes % 16 != 0))
        bench.fault = "rows are misaligned";
    else if (to < bench.dst || to + count > bench.dst + bench.dst_bytes)
        bench.fault = "a write is outside the destination";
    else
        memcpy(to, bytes, count);
}

/* Four pixels of sixteen lanes. */
static void weave(const struct reformat_slab *j, const char *stage, uint32_t n, char *dst)
{
    const uint32_t eight = n % j->eights.d, quad = n / j->eights.d % j->quads.d;
    const uint32_t block = n / j->eights.d / j->quads.d;
    for (uint32_t p = 0; p < 4; p++) {
        const uint32_t index =
            (block * j->pixels.d + quad * 4 + p) * j->to.lanes.d + eight * 16;
        char piece[16];
        for (uint32_t i = 0; i < 16; i++)
            move_element(j, stage, index + i, piece + i);
        if (j->form == BYTES_BRAID)
            send(j, dst, index, piece, 16);
        else
            make_piece(j, stage, index / 16, dst);
    }
}

/* Sixteen pixels of four planes. */
static void comb(const struct reformat_slab *j, const char *stage, uint32_t n, char *dst)
{
    const uint32_t first = n / j->eights.d * 4;
    for (uint32_t c = first; c < first + 4 && c < j->channels; c++)
        make_piece(j, stage, c * j->eights.d + n % j->eights.d, dst);
}

/* Four pixels of sixteen planes. */
static void unweave(const struct reformat_slab *j, const char *stage, uint32_t n,
                    char *dst)
{
    const uint32_t quad = n % j->quads.d, first = n / j->quads.d * 16;
    for (uint32_t c = first; c < first + 16 && c < j->channels; c++) {
        char four[4];
        for (uint32_t p = 0; p < 4; p++)
            move_element(j, stage, c * j->pixels.d + quad * 4 + p, four + p);
        if (((uintptr_t)dst + c * j->stride) % 4 != 0)
            bench.fault = "four pixels are misaligned";
        send(j, dst, c * j->stride + quad * 4, four, 4);
    }
}

/* The planes' bytes of sixteen bytes of vectors. */
static void scatter(const struct reformat_slab *j, const char *stage, uint32_t n,
                    char *dst)
{
    for (uint32_t byte = n * 16; byte < n * 16 + 16 && byte < j->bytes; byte++) {
        const uint32_t vector = divide(byte, j->from.lanes);
        const uint32_t row = divide(vector, j->pixels);
        const uint32_t image = divide(row, j->from.blocks);
        const uint32_t c = (row - image * j->from.blocks.d) * j->from.lanes.d + byte -
                           vector * j->from.lanes.d;
        if (c < j->channels)
            send(j, dst,
                 (image * j->to.blocks.d + c) * j->pixels.d + vector - row * j->pixels.d,
                 stage + byte, 1);
    }
}

int reformat_launch_bytes(const struct reformat_slab *j, void *stream)
{
    static void (*const make[])(const struct reformat_slab *j, const char *stage,
                                uint32_t n, char *dst) = {
        [BYTES_WORDS] = make_piece,  [BYTES_PIECES] = make_piece,
        [BYTES_GATHER] = make_piece, [BYTES_WEAVE] = weave,
        [BYTES_COMB] = comb,         [BYTES_BRAID] = weave,
        [BYTES_SCATTER] = scatter,   [BYTES_UNWEAVE] = unweave,
        [BYTES_SPREAD] = unweave,
    };
    const bool quads = j->form >= BYTES_WEAVE && j->form != BYTES_SCATTER;
    (void)stream;
    forms[j->form]++;
    if (j->threads % 32 != 0 || j->threads > REFORMAT_QUAD_THREADS ||
        j->threads * (uint32_t)j->held < j->items)
        bench.fault = "threads do not hold the tile";
    if (quads && (j->end || j->pixels.d % 4 != 0 || j->last_pixel % 4 != 0))
        bench.fault = "four pixels do not lie together";
    if (j->form == BYTES_GATHER && j->bytes + 16 + 3 * j->pixels.d + ZEROS > j->stage)
        bench.fault = "pads are read past the stage";
    make_tiles(j, make[j->form]);
    return 0;
}

/* ---- pairs ------------------------------------------------------------------------- */

static uint32_t draw(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

/* Values that both dtypes hold. */
static void fill(char *data, int dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (strata_dtype_size(dtype) == 1)
            data[i] = (char)draw();
        else
            store(data + (size_t)i * strata_dtype_size(dtype), dtype,
                  (float)((int)(draw() % 4001) - 2000) / 8);
}

/* How many rows took the pair. */
static int check_pair(const char *to, const char *from, const int64_t *dims,
                      size_t to_offset, size_t from_offset)
{
    static _Alignas(256) char src[ROOM], dst[ROOM], want[ROOM];
    strata_error err = {0};
    strata_desc d, s;
    int taken = 0, cuda;
    cr_assert_eq(strata_desc_format(&d, to, dims, 4, &err), STRATA_OK, "%s", err.message);
    cr_assert_eq(strata_desc_format(&s, from, dims, 4, &err), STRATA_OK, "%s",
                 err.message);
    bench.src = src + from_offset * strata_dtype_size(s.dtype);
    bench.dst = dst + to_offset * strata_dtype_size(d.dtype);
    bench.src_bytes = (size_t)strata_desc_bytes(&s);
    bench.dst_bytes = (size_t)strata_desc_bytes(&d);
    cr_assert(bench.src_bytes + 256 < ROOM && bench.dst_bytes + 256 < ROOM);
    fill((char *)(uintptr_t)bench.src, s.dtype, strata_desc_size(&s));
    cr_assert_eq(reformat(&d, want, &s, bench.src, &err), STRATA_OK, "%s", err.message);
    for (size_t row = 0; row < reformat_cuda_rows(); row++) {
        if (strcmp(reformat_cuda_row_name(row), "slab") != 0 &&
            strcmp(reformat_cuda_row_name(row), "bytes") != 0)
            continue;
        memset(bench.dst, 0xa5, bench.dst_bytes);
        bench.fault = NULL;
        if (reformat_cuda_row(row, &d, bench.dst, &s, bench.src, NULL, &cuda, &err) !=
            STRATA_OK)
            continue;
        taken++;
        cr_assert(!bench.fault && memcmp(bench.dst, want, bench.dst_bytes) == 0,
                  "%s: %s to %s, %lldx%lldx%lldx%lld, at %zu and %zu: %s",
                  reformat_cuda_row_name(row), from, to, (long long)dims[0],
                  (long long)dims[1], (long long)dims[2], (long long)dims[3], to_offset,
                  from_offset, bench.fault ? bench.fault : "wrong values");
    }
    return taken;
}

Test(reformat_slab, jobs_give_what_the_host_gives, .timeout = 600)
{
    static const char *const names[] = {"fp32:nchw",    "fp16:nchw", "fp16:nc/2hw2",
                                        "fp16:nhwc8",   "fp32:nhwc", "fp16:nhwc",
                                        "fp32:nc/8hw8", "fp32:chwn", "fp16:nc/7hw7"};
    static const int64_t channels[] = {1,  2,  3,  7,  8,  9,  16,  17,
                                       32, 33, 64, 65, 67, 96, 130, 256};
    static const int64_t sides[] = {1, 2, 5, 7, 8, 14, 20, 28};
    int taken = 0;
    for (int i = 0; i < 1500; i++) {
        const int most = i % 2 ? 4 : (int)(sizeof names / sizeof names[0]);
        const int64_t dims[] = {1 + draw() % 17, channels[draw() % 16], sides[draw() % 8],
                                sides[draw() % 8]};
        const bool off = draw() % 4 == 0;
        const char *to = names[draw() % (unsigned)most];
        const char *from = names[draw() % (unsigned)most];
        if (dims[0] * dims[1] * dims[2] * dims[3] < 100000)
            taken +=
                check_pair(to, from, dims, off ? draw() % 16 : 0, off ? draw() % 16 : 0);
    }
    cr_expect_gt(taken, 400, "only %d jobs", taken);
}

/* Tiles cut through channels, through planes, over images, and at any alignment. */
Test(reformat_slab, every_kind_of_cut_is_made, .timeout = 600)
{
    static const int64_t shapes[][4] = {
        {32, 3, 7, 7},    {6, 67, 7, 7},   {9, 64, 7, 7},   {2, 512, 7, 7},
        {2, 256, 14, 14}, {1, 67, 56, 56}, {1, 64, 56, 56}, {1, 192, 30, 32},
    };
    static const char *const names[] = {"fp32:nchw", "fp16:nchw", "fp16:nc/2hw2",
                                        "fp16:nhwc8"};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int taken = 0;
        for (int i = 0; i < 16; i++)
            taken += check_pair(names[i / 4], names[i % 4], shapes[s], 0, 0);
        cr_expect_geq(taken, 4, "shape %zu: %d of 16 pairs", s, taken);
    }
    for (int form = 0; form <= SLAB_SPREAD; form++)
        cr_expect_gt(forms[form], 0, "form %d was not used", form);
}

static const char *const bytes[] = {"int8:nchw", "int8:nc/4hw4", "int8:nc/32hw32",
                                    "int8:nhwc16"};

Test(reformat_slab, jobs_of_bytes_give_what_the_host_gives, .timeout = 600)
{
    static const char *const others[] = {"int8:nhwc", "e4m3:nhwc16",    "int8:nc/5hw5",
                                         "int8:chwn", "int8:nc/16hw16", "e4m3:nchw"};
    static const int64_t channels[] = {1,  2,  3,  4,  8,  15,  16,  17,
                                       32, 33, 64, 67, 96, 128, 130, 512};
    static const int64_t sides[] = {1, 2, 5, 7, 8, 14, 20, 28};
    int taken = 0;
    for (int i = 0; i < 3000; i++) {
        const int64_t dims[] = {1 + draw() % 17, channels[draw() % 16], sides[draw() % 8],
                                sides[draw() % 8]};
        const char *to = draw() % 5 ? bytes[draw() % 4] : others[draw() % 6];
        const char *from = draw() % 5 ? bytes[draw() % 4] : others[draw() % 6];
        const uint32_t off = draw() % 4;
        if (dims[0] * dims[1] * dims[2] * dims[3] < 100000)
            taken += check_pair(to, from, dims, off ? 0 : draw() % 20,
                                off ? 0 : draw() % 5 * 4);
    }
    cr_expect_gt(taken, 800, "only %d jobs", taken);
}

Test(reformat_slab, every_kind_of_cut_of_bytes_is_made, .timeout = 600)
{
    static const int64_t shapes[][4] = {
        {64, 3, 7, 7},    {8, 67, 7, 7},   {9, 64, 7, 7},   {2, 512, 7, 7},
        {2, 512, 14, 14}, {1, 67, 56, 56}, {1, 64, 56, 56}, {1, 256, 56, 56},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int taken = 0;
        for (int i = 0; i < 16; i++)
            taken += check_pair(bytes[i / 4], bytes[i % 4], shapes[s], 0, 0);
        cr_expect_geq(taken, 8, "shape %zu: %d of 12 pairs", s, taken);
    }
    for (int form = BYTES_WORDS; form <= BYTES_SPREAD; form++)
        cr_expect_gt(forms[form], 0, "form %d was not used", form);
}
