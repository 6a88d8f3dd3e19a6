/* SPDX-License-Identifier: Apache-2.0
 *
 * Winograd's convolution before it runs: what it takes, how it will go about its tiles,
 * and the weights' transform.
 */
#include "plugins/convolution/winograd/winograd.h"

#include "plugins/convolution/core.h"

#define BLOCK_BYTES (384 << 10)   /* tiles and products of a block: in L2 */
#define SHARED_BYTES (2 << 20)    /* transformed tiles that threads may share */
#define PRODUCT_BYTES (128 << 10) /* products of a task, where they do */
#define TASKS 4                   /* a thread, where they do */

static size_t float_bytes(int64_t n)
{
    return (size_t)winograd_round_up(n * (int64_t)sizeof(float), 256);
}

static int64_t widest(const struct winograd *s)
{
    return (s->units + s->panels - 1) / s->panels * s->unit;
}

/* Blocks read all weights each; tiles in common are read for every panel of filters. */
static bool wants_common(const struct winograd *s, double tiles, int64_t blocks)
{
    const double row = (double)winograd_depth(s) * WINOGRAD_SPOTS * sizeof(float);
    const double by_blocks = (double)blocks * row * (double)(s->units * s->unit);
    return tiles * row <= SHARED_BYTES && tiles * row * (double)s->panels < by_blocks;
}

static struct winograd_plan plan_of(const struct winograd *s, int64_t images)
{
    const int64_t height = s->set->rows, columns = widest(s);
    const int64_t row =
        (winograd_depth(s) + columns) * WINOGRAD_SPOTS * (int64_t)sizeof(float);
    const int64_t tiles = images * ((s->w.out[1] + 1) / WINOGRAD_STEP) *
                          ((s->w.out[2] + 1) / WINOGRAD_STEP);
    const int64_t groups = window_max(1, (tiles + height - 1) / height);
    const int64_t most = window_max(1, BLOCK_BYTES / (row * height));
    struct winograd_plan p = {.threads = (int)convolution_threads(),
                              .groups = window_min(most, groups)};
    const int64_t blocks = winograd_round_up((groups + most - 1) / most, p.threads);
    p.shared = wants_common(s, (double)(groups * height), blocks);
    p.part = p.groups;
    if (p.shared) {
        const int64_t parts = (TASKS * p.threads + s->panels - 1) / s->panels;
        const int64_t many =
            PRODUCT_BYTES / (columns * height * WINOGRAD_SPOTS * (int64_t)sizeof(float));
        p.part = window_max(1, window_min((groups + parts - 1) / parts, many));
        p.groups = groups;
    }
    p.tiles_bytes = float_bytes(WINOGRAD_SPOTS * winograd_spot(s, p.groups * height));
    p.product_bytes =
        float_bytes(WINOGRAD_SPOTS * (p.part * height * columns + WINOGRAD_SKEW));
    return p;
}

static int resolve(struct winograd *s, const strata_node *n)
{
    const strata_convolution *p = n->params;
    const strata_tensor *in = &n->in[0];
    int status = window_of_convolution(&s->w, p, in, &n->weight[0], n->host, n->err);
    if (status != STRATA_OK)
        return status;
    if (in->rank != 4 || p->groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes images of rank 4 in one group of channels");
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (s->w.kernel[d] != 3 || s->w.stride[d] != 1 || s->w.dilation[d] != 1)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "takes a kernel of 3x3, without stride and dilation");
    s->set = tile_choose();
    s->channels = in->dims[1];
    s->filters = n->out[0].dims[1];
    s->unit = window_max(s->set->lanes, WINOGRAD_UNIT);
    s->units = (s->filters + s->unit - 1) / s->unit;
    const int64_t most = TILE_VECTORS * s->set->lanes / s->unit;
    s->panels = (s->units + most - 1) / most;
    s->plan = plan_of(s, in->dims[0]);
    return STRATA_OK;
}

int winograd_accept(const strata_node *n)
{
    struct winograd s = {0};
    return resolve(&s, n);
}

size_t winograd_workspace(const strata_node *n)
{
    struct winograd s = {0};
    if (resolve(&s, n) != STRATA_OK)
        return SIZE_MAX;
    const struct winograd_plan *p = &s.plan;
    const size_t all = p->shared ? 1 : (size_t)p->threads;
    return all * p->tiles_bytes + (size_t)p->threads * p->product_bytes;
}

/* ---- weights ----------------------------------------------------------------------- */

/* GgG', in double: it is done once. */
static void transform_weight(const float *g, double u[WINOGRAD_SPOTS])
{
    double h[4][3];
    for (int c = 0; c < 3; c++) {
        const double a = g[c], b = g[3 + c], d = g[6 + c];
        h[0][c] = a;
        h[1][c] = (a + b + d) / 2;
        h[2][c] = (a - b + d) / 2;
        h[3][c] = d;
    }
    for (int r = 0; r < 4; r++, u += 4) {
        u[0] = h[r][0];
        u[1] = (h[r][0] + h[r][1] + h[r][2]) / 2;
        u[2] = (h[r][0] - h[r][1] + h[r][2]) / 2;
        u[3] = h[r][2];
    }
}

/* A panel's columns beyond the filters are zeros. */
static void pack_panel(const struct winograd *s, const float *weight, int64_t panel,
                       float *packed)
{
    const int64_t first = winograd_first_unit(s, panel) * s->unit;
    const int64_t columns = winograd_first_unit(s, panel + 1) * s->unit - first;
    float *to = packed + first * WINOGRAD_SPOTS * s->channels;
    for (int64_t k = 0; k < s->channels; k++)
        for (int64_t c = 0; c < columns; c++) {
            double u[WINOGRAD_SPOTS] = {0};
            if (first + c < s->filters)
                transform_weight(weight + ((first + c) * s->channels + k) * 9, u);
            for (int64_t spot = 0; spot < WINOGRAD_SPOTS; spot++)
                to[(spot * s->channels + k) * columns + c] = (float)u[spot];
        }
}

int winograd_setup(const strata_node *n, void *state)
{
    struct winograd *s = state;
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    int status = resolve(s, n);
    size_t bytes;
    void *packed;
    if (status != STRATA_OK)
        return status;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 " for packed weights");
    if (__builtin_mul_overflow((size_t)(s->units * s->unit),
                               WINOGRAD_SPOTS * sizeof(float), &bytes) ||
        __builtin_mul_overflow((size_t)s->channels, bytes, &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    if ((status = pack->alloc(n, bytes, &packed)) != STRATA_OK)
        return status;
#pragma omp parallel for if (bytes > 65536)
    for (int64_t panel = 0; panel < s->panels; panel++)
        pack_panel(s, n->weight[0].data, panel, packed);
    s->weights = packed;
    return STRATA_OK;
}