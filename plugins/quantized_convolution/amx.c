/* SPDX-License-Identifier: Apache-2.0
 *
 * `amx` around its blocks: where windows are read from, weights as they are read, pixels
 * and filters among threads.
 */
#include "plugins/quantized_convolution/amx.h"

#include "plugins/common/filters.h"
#include "plugins/common/team/threads.h"

enum { WEIGHT = STRATA_QUANTIZED_WEIGHT };
enum { SMALL = 1 << 20 };  /* bytes of weights that L2 holds beside the rest */
enum { PIXELS = 1 << 19 }; /* bytes of pixels that L2 holds beside the rest */

/* Clocks, as measured: of a product, of a row of a window that is gathered, of 64 bytes
 * of it. */
enum { PRODUCT = 16, ROW = 15, LINE = 8 };

static int64_t parts_of(int64_t all, int64_t most)
{
    return (all + most - 1) / most;
}

static int64_t rounded(int64_t all, int64_t to)
{
    return parts_of(all, to) * to;
}

/* ---- resolving --------------------------------------------------------------------- */

/* Windows are the input's pixels, of whole steps. */
static int is_plain(const struct amx *a)
{
    int plain = a->channels % AMX_STEP == 0;
    for (int d = 0; d < WINDOW_DIMS; d++)
        plain &= a->w.kernel[d] == 1 && a->w.stride[d] == 1 && a->w.begin[d] == 0 &&
                 a->w.out[d] == a->w.in[d];
    return plain;
}

static int64_t steps_of(const struct amx *a)
{
    return a->rows * a->row_steps;
}

/* Of an image as tiles see it. */
static int64_t pixels_of(const struct amx *a)
{
    return a->out_rows > 0 ? (a->out_rows - 1) * a->width + a->out_width : 0;
}

static double clocks_of(const struct amx *a)
{
    const double tiles = (double)parts_of(pixels_of(a), AMX_ROWS) * (double)a->images;
    const double products =
        (double)steps_of(a) * (double)parts_of(a->filters, VNNI_LANES) * PRODUCT;
    const double rows = (double)(a->w.kernel[0] * a->w.kernel[1]);
    const double gathered = rows * ROW + (double)a->row_steps * LINE;
    return tiles * (products + (a->source == AMX_GATHER ? AMX_ROWS * gathered : 0));
}

/* All pixels as one row, each window's bytes behind one another. */
static void resolve_row(struct amx *a, int64_t pixels)
{
    const int64_t depth = a->channels * window_kernel_count(&a->w);
    a->source = is_plain(a) ? AMX_PLAIN : AMX_GATHER;
    a->rows = 1;
    a->row_steps = parts_of(depth, AMX_STEP);
    /* Rows of a tile lie in sets of their own. */
    a->pitch = a->source == AMX_PLAIN ? a->channels : (a->row_steps | 1) * AMX_STEP;
    a->images = a->out_rows = 1;
    a->width = a->out_width = pixels;
}

static void resolve_extent(struct amx *a)
{
    const struct window *w = &a->w;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t last = (w->out[d] - 1) * w->stride[d] + window_extent(w, d);
        a->extent[d] = window_max(window_max(w->in[d], last), w->begin[d]);
    }
}

/* Images one after the other, in planes. */
static void resolve_lines(struct amx *a, int64_t images)
{
    const struct window *w = &a->w;
    const int64_t columns = w->dilation[2] == 1 ? w->kernel[2] : 1;
    a->source = AMX_LINES;
    a->rows = window_kernel_count(w) / columns;
    a->row_steps = parts_of(columns * a->channels, AMX_STEP);
    a->pitch = w->stride[2] * a->channels;
    a->images = images;
    a->out_rows = w->out[1];
    a->out_width = w->out[2];
    a->width = rounded(w->out[2], AMX_ROWS);
    if (w->stride[1] == 1 && w->stride[2] == 1 && a->extent[2] < a->width)
        a->width = a->extent[2];
}

/* With a pad before its depth a volume's one window may lie in pads alone. */
static int is_plane(const struct amx *a)
{
    return a->extent[0] == 1 && a->w.begin[0] == 0 && a->w.kernel[1] * a->w.kernel[2] > 1;
}

static int64_t copy_bytes(const struct amx *a)
{
    int64_t bytes = a->channels;
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (__builtin_mul_overflow(bytes, a->extent[d], &bytes))
            return INT64_MAX;
    return bytes;
}

static int resolve(struct amx *a, const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    int status = filters_of_convolution(n, &p->convolution, &n->weight[WEIGHT], &a->w,
                                        &a->filters);
    if (status == STRATA_OK)
        status = quantized_check_depth(n, n->in[0].dims[1], window_kernel_count(&a->w));
    if (status != STRATA_OK)
        return status;
    a->channels = n->in[0].dims[1];
    a->is_signed = n->in[0].dtype == STRATA_INT8;
    resolve_extent(a);
    resolve_row(a, n->in[0].dims[0] * window_out_count(&a->w));
    struct amx lines = *a;
    resolve_lines(&lines, n->in[0].dims[0]);
    if (a->source == AMX_GATHER && is_plane(a) && clocks_of(&lines) < clocks_of(a))
        *a = lines;
    if (copy_bytes(a) >= INT64_MAX / 2)
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "an image with its pads is too large");
    const int64_t most = PIXELS / a->pitch / AMX_PIXELS * AMX_PIXELS;
    a->chunk = window_min(rounded(pixels_of(a), AMX_PIXELS), most);
    a->chunk = window_max(a->chunk, AMX_PIXELS);
    return STRATA_OK;
}

static int check_processor(const strata_node *n)
{
    return amx_is_there() ? STRATA_OK
                          : STRATA_FAIL(n, STRATA_EDEVICE,
                                        "the CPU or the system has no AMX for bytes");
}

/* Where more of a product's depth is padding, four bytes at a time are as fast. */
static int check_depth(const strata_node *n, const struct amx *a)
{
    const int64_t depth = a->channels * window_kernel_count(&a->w);
    const int64_t padded = rounded(depth, AMX_STEP);
    return 4 * depth >= 3 * padded
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "%lld channels by taps fill less than 3/4 of the %lld "
                             "that AMX multiplies",
                             (long long)depth, (long long)padded);
}

int amx_accept(const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    struct amx a;
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK)
        status = check_processor(n);
    if (status == STRATA_OK && p->convolution.groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it has one group of channels");
    if (status == STRATA_OK)
        status = resolve(&a, n);
    return status ? status : check_depth(n, &a);
}

/* Of a thread's gathered windows. */
static size_t share_of(const struct amx *a)
{
    return (size_t)(a->chunk * a->pitch + AMX_STEP);
}

size_t amx_workspace(const strata_node *n)
{
    struct amx a;
    size_t bytes;
    if (resolve(&a, n) != STRATA_OK)
        return SIZE_MAX;
    if (a.source == AMX_PLAIN) /* the last tiles are gathered */
        return AMX_PIXELS * (size_t)a.pitch + AMX_STEP;
    if (a.source == AMX_LINES)
        return (size_t)(copy_bytes(&a) + AMX_PIXELS * a.pitch + AMX_STEP);
    return __builtin_mul_overflow(share_of(&a), (size_t)team_most(), &bytes) ? SIZE_MAX
                                                                             : bytes;
}

/* ---- setup ------------------------------------------------------------------------- */

static void find_offsets(const struct amx *a, int64_t *offset)
{
    const struct window *w = &a->w;
    const int64_t columns = w->dilation[2] == 1 ? 1 : w->kernel[2];
    for (int64_t r = 0; r < a->rows; r++) {
        const int64_t y = r / columns * w->dilation[1], x = r % columns * w->dilation[2];
        const int64_t at = (y * a->extent[2] + x) * a->channels;
        for (int64_t i = 0; i < a->row_steps; i++)
            *offset++ = at + i * AMX_STEP;
    }
}

static int64_t own_filter(const void *user, int64_t lane)
{
    const struct amx *a = user;
    return lane < a->filters ? lane : -1;
}

int amx_setup(const strata_node *n, void *state)
{
    struct amx *a = state;
    void *packed, *offset;
    int status = check_processor(n);
    if (status == STRATA_OK)
        status = resolve(a, n);
    if (status != STRATA_OK)
        return status;
    const int64_t taps = window_kernel_count(&a->w);
    const size_t lanes = (size_t)rounded(a->filters, VNNI_FILTERS);
    const size_t filters = (size_t)rounded(a->filters, VNNI_LANES);
    const size_t steps = (size_t)steps_of(a); /* fewer than 65,536 */
    if ((status = vnni_allocate(n, steps, sizeof *a->offset, &offset)) ||
        (status = vnni_allocate(n, filters, steps * AMX_STEP, &packed)) ||
        (status =
             vnni_make_lanes(n, lanes, a->channels * taps, 0, own_filter, a, &a->lanes)))
        return status;
    find_offsets(a, offset);
    vnni_pack(&(struct vnni_packing){a->filters, a->channels, taps, a->rows,
                                     a->row_steps * AMX_STEP / 4, 1},
              n->weight[WEIGHT].data, packed);
    a->offset = offset;
    a->packed = packed;
    a->weight_bytes = (int64_t)(filters * steps * AMX_STEP);
    a->join = vnni_find_join(n);
    return STRATA_OK;
}

/* ---- running ----------------------------------------------------------------------- */

/* A thread's: pixels [begin, end) by blocks of filters [first, last). */
struct part {
    struct amx_input in;
    struct amx_block block;
    const uint8_t *x; /* the first window, where none is gathered */
    int64_t row_bytes;
    int64_t whole; /* pixels whose windows may be read there */
    int64_t begin, end, first, last;
    int64_t chunk;     /* pixels by which weights are read once */
    uint8_t *gathered; /* windows from the chunk's first pixel on, or the last ones */
};

static const uint8_t *window_at(const struct part *p, int64_t pixel, int64_t gathered)
{
    const struct amx *a = p->in.a;
    return pixel >= p->whole
               ? p->gathered + (pixel - gathered) * a->pitch
               : p->x + pixel / a->width * p->row_bytes + pixel % a->width * a->pitch;
}

/* 64 filters by pixels of a chunk. The first time, and where L2 does not keep them, the
 * next ones' weights come meanwhile. */
static void run_chunk(const struct part *p, int64_t begin, int64_t end, int64_t f)
{
    const struct amx *a = p->in.a;
    struct amx_block b = p->block;
    const int64_t weights = VNNI_FILTERS * steps_of(a) * AMX_STEP;
    const int64_t gathered = a->source == AMX_GATHER ? begin : p->whole;
    const int comes = f + 1 < p->last && (p->chunk > AMX_PIXELS || begin == p->begin);
    b.to.filter = f * VNNI_FILTERS;
    b.next = a->packed + (f + 1) * weights;
    b.lines = comes ? parts_of(weights / 64, parts_of(end - begin, AMX_PIXELS)) : 0;
    for (int64_t i = begin; i < end; i += AMX_PIXELS) {
        b.pixels = (int)window_min(end - i, AMX_PIXELS);
        b.row = i / a->width;
        b.column = i % a->width;
        b.x[0] = window_at(p, i, gathered);
        b.x[1] = window_at(p, i + AMX_ROWS, gathered);
        amx_run_block(&b);
        b.next += b.lines * 64;
    }
}

static void run_part(struct part p)
{
    _Alignas(64) int32_t sums[AMX_PIXELS * VNNI_FILTERS];
    p.block.sums = sums;
    for (int64_t i = p.begin; i < p.end; i += p.chunk) {
        const int64_t end = window_min(i + p.chunk, p.end);
        if (p.in.a->source == AMX_GATHER)
            amx_gather(&p.in, i, end - i, p.gathered);
        for (int64_t f = p.first; f < p.last; f++)
            run_chunk(&p, i, end, f);
    }
}

/* Groups of filters: threads read all weights or all pixels, whatever is less. */
static int64_t groups_of(const struct amx *a, int64_t threads)
{
    int64_t groups = window_min(threads, parts_of(a->filters, VNNI_FILTERS));
    if (a->weight_bytes <= pixels_of(a) * a->pitch)
        return 1;
    while (threads % groups)
        groups--;
    return groups;
}

/* Part i of so many. */
static struct part part_of(const struct part *all, int64_t i, int64_t parts)
{
    const struct amx *a = all->in.a;
    const int64_t groups = groups_of(a, parts), shares = parts / groups;
    const int64_t blocks = parts_of(a->filters, VNNI_FILTERS), pixels = pixels_of(a);
    const int64_t tiles = parts_of(pixels, AMX_ROWS), g = i / shares, s = i % shares;
    struct part p = *all;
    p.begin = tiles * s / shares * AMX_ROWS;
    p.end = window_min(tiles * (s + 1) / shares * AMX_ROWS, pixels);
    p.first = blocks * g / groups;
    p.last = blocks * (g + 1) / groups;
    p.chunk = groups > 1 || a->weight_bytes > SMALL ? a->chunk : AMX_PIXELS;
    return p;
}

/* By a team: its threads share the copy of an image, or of the last windows. */
static void prepare(const struct part *all, int64_t image, uint8_t *workspace)
{
    const struct amx *a = all->in.a;
    const int64_t row = a->extent[2] * a->channels, left = pixels_of(a) - all->whole;
    if (a->source == AMX_LINES) {
#pragma omp for schedule(static)
        for (int64_t y = 0; y < a->extent[1]; y++)
            amx_copy_row(&all->in, image, y, workspace + y * row);
    } else if (a->source == AMX_PLAIN && left > 0) {
#pragma omp single
        amx_gather(&all->in, all->whole, left, workspace);
    }
}

static void run_images(const struct part *all, uint8_t *workspace, int64_t parts)
{
    const struct amx *a = all->in.a;
    for (int64_t image = 0; image < a->images; image++) {
        prepare(all, image, workspace);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < parts; i++) {
            struct part p = part_of(all, i, parts);
            p.block.first = image * a->out_rows * a->out_width;
            p.gathered = workspace;
            if (a->source == AMX_GATHER)
                p.gathered += (size_t)team_self() * share_of(a);
            run_part(p);
        }
    }
}

/* Where windows are read: in the input all but those of the last tile, which go on. */
static void find_source(struct part *p, const uint8_t *workspace)
{
    const struct amx *a = p->in.a;
    p->x = a->source == AMX_PLAIN ? p->in.x : workspace;
    p->row_bytes = a->w.stride[1] * a->extent[2] * a->channels;
    p->whole = a->source == AMX_LINES   ? INT64_MAX
               : a->source == AMX_PLAIN ? a->width / AMX_ROWS * AMX_ROWS
                                        : 0;
}

int amx_run(const strata_run *r)
{
    const struct amx *a = r->state;
    const strata_quantized_convolution *p = r->params;
    const struct vnni_end end = vnni_end_of(r, &a->lanes);
    const uint8_t *x = r->in[0].data;
    const int64_t bytes = r->in[0].dims[0] * window_in_count(&a->w) * a->channels;
    struct part all = {.in = {a, x, x + bytes, (uint8_t)p->quantized.zero_in},
                       .block = {.a = a,
                                 .to = {.end = &end,
                                        .lanes = &a->lanes,
                                        .join = &a->join,
                                        .filters = a->filters,
                                        .addend = r->n_in > 1 ? r->in[1].data : NULL,
                                        .out = r->out[0].data}}};
    int64_t threads = team_most();
    if (a->source == AMX_GATHER)
        threads = window_min(threads, (int64_t)(r->workspace_size / share_of(a)));
    if (pixels_of(a) == 0)
        return STRATA_OK;
    find_source(&all, r->workspace);
#pragma omp parallel num_threads((int)threads)
    {
        amx_begin();
        run_images(&all, r->workspace, threads);
        amx_end();
    }
    return STRATA_OK;
}
