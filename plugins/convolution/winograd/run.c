/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile is 2x2 outputs; a spot is one of the 4x4 places of its transform. Input tiles
 * become V[spot][tile][channel]; at each spot they are multiplied by the weights'
 * transform, packed in setup, a panel of filters at a time; and the products become
 * outputs while they are in the cache.
 */
#include "plugins/convolution/winograd/transform.h"

#include "plugins/common/team/threads.h"
#include "plugins/common/team/turn.h"
#include "plugins/common/walk.h"
#include "plugins/convolution/core.h"

#define DEPTH 256        /* of a panel that is multiplied at once: it stays in L1 */
#define PARALLEL 100000. /* multiply-adds that pay for a thread team */

static void transform_rows(const struct winograd_job *j, const struct winograd_block *b,
                           int64_t first, int64_t rows)
{
    const int64_t end = window_min(first + rows, j->tiles), depth = winograd_depth(j->s);
    for (int64_t tile = first; tile < end; tile++)
        j->kernels->transform(j, b, tile);
    for (int64_t spot = 0; spot < WINOGRAD_SPOTS && end < first + rows; spot++)
        memset(b->v + spot * b->spot + (end - b->first) * depth, 0,
               (size_t)((first + rows - end) * depth) * sizeof *b->v);
}

static struct winograd_panel panel_of(const struct winograd_job *j, int64_t index)
{
    const struct winograd *s = j->s;
    const strata_epilogue *e = j->epilogue;
    const int64_t first = winograd_first_unit(s, index) * s->unit;
    struct winograd_panel p = {
        .filter = first,
        .columns = winograd_first_unit(s, index + 1) * s->unit - first,
        .weights = s->weights + first * WINOGRAD_SPOTS * s->channels};
    const int64_t n = window_min(p.columns, s->filters - first);
    for (int64_t i = 0; i < n; i++) {
        p.scale[i] = e->flags & STRATA_EPILOGUE_SCALE ? e->scale[first + i] : 1;
        p.shift[i] = e->flags & STRATA_EPILOGUE_BIAS ? e->bias[first + i] : 0;
        if (j->bias)
            p.shift[i] += p.scale[i] * j->bias[first + i];
    }
    return p;
}

/* Floats [from, to) of the weights that come next. */
static void fetch(const float *next, int64_t from, int64_t to)
{
    for (int64_t i = from & ~(int64_t)15; i < to; i += 16)
        __builtin_prefetch(next + i, 0, 2);
}

static void multiply(const struct winograd *s, const struct winograd_block *b,
                     const struct winograd_panel *p, const struct winograd_products *m)
{
    const int64_t depth = winograd_depth(s), rows = s->set->rows;
    const tile_fn run = s->set->tile[1][p->columns / s->set->lanes - 1];
    struct tile_operands o = {.a_row = depth,
                              .a_step = 1,
                              .b_row = p->columns,
                              .c_row = p->columns,
                              .b = p->weights,
                              .columns = p->columns};
    for (int64_t spot = 0; spot < WINOGRAD_SPOTS; spot++)
        for (int64_t k = 0; k < s->channels; k += DEPTH) {
            o.k = window_min(DEPTH, s->channels - k);
            o.a = b->v + spot * b->spot + (m->first - b->first) * depth + k;
            o.c = m->m + spot * m->spot;
            o.accumulate = k > 0;
            const int64_t floats = o.k * p->columns;
            for (int64_t i = 0; i < m->rows; i += rows) {
                run(&o);
                fetch(o.b + floats, floats * i / m->rows, floats * (i + rows) / m->rows);
                o.a += rows * depth;
                o.c += rows * p->columns;
            }
            o.b += floats;
        }
}

/* ---- all of it ------------------------------------------------------------------- */

/* Tiles [first, first + rows) of a block by a panel, to outputs; m: a thread's memory. */
static void by_panel(const struct winograd_job *j, const struct winograd_block *b,
                     int64_t panel, int64_t first, int64_t rows, float *m)
{
    const struct winograd_panel p = panel_of(j, panel);
    const struct winograd_products products = {
        .first = first, .rows = rows, .spot = rows * p.columns + WINOGRAD_SKEW, .m = m};
    const int64_t end = window_min(first + rows, j->tiles);
    multiply(j->s, b, &p, &products);
    for (int64_t tile = first; tile < end; tile++)
        j->kernels->collect(j, &p, &products, tile);
}

static struct winograd_block block_of(const struct winograd_job *j, int64_t group,
                                      int64_t end, void *v)
{
    const int64_t height = j->s->set->rows;
    return (struct winograd_block){.first = group * height,
                                   .rows = (end - group) * height,
                                   .spot = winograd_spot(j->s, (end - group) * height),
                                   .v = v};
}

/* No more than the plan has memory for. */
static int threads_of(const struct winograd *s)
{
    return (int)window_min(convolution_threads(), s->plan.threads);
}

/* Each block by one thread, as many for each as can be. */
static void in_blocks(const struct winograd_job *j, char *memory, int threads)
{
    const struct winograd_plan *plan = &j->s->plan;
    const int64_t blocks = window_min(
        winograd_round_up((j->groups + plan->groups - 1) / plan->groups, threads),
        j->groups);
    int64_t next = 0;
#pragma omp parallel num_threads(threads)
    for (int64_t i; team_turn(&next, blocks, &i);) {
        char *own =
            memory + (size_t)team_self() * (plan->tiles_bytes + plan->product_bytes);
        const struct winograd_block b =
            block_of(j, j->groups * i / blocks, j->groups * (i + 1) / blocks, own);
        transform_rows(j, &b, b.first, b.rows);
        for (int64_t panel = 0; panel < j->s->panels; panel++)
            by_panel(j, &b, panel, b.first, b.rows, (float *)(own + plan->tiles_bytes));
    }
}

/* All tiles are transformed, then each thread has some panels and parts of the tiles. */
static void in_common(const struct winograd_job *j, char *memory, int threads)
{
    const struct winograd *s = j->s;
    const struct winograd_plan *plan = &s->plan;
    const struct winograd_block b = block_of(j, 0, j->groups, memory);
    const int64_t height = s->set->rows;
    const int64_t parts = (j->groups + plan->part - 1) / plan->part;
    int64_t next = 0;
#pragma omp parallel num_threads(threads)
    {
        float *m = (float *)(memory + plan->tiles_bytes +
                             (size_t)team_self() * plan->product_bytes);
#pragma omp for schedule(static)
        for (int64_t group = 0; group < j->groups; group++)
            transform_rows(j, &b, group * height, height);
        for (int64_t i; team_turn(&next, s->panels * parts, &i);) {
            const int64_t first = j->groups * (i % parts) / parts;
            const int64_t end = j->groups * (i % parts + 1) / parts;
            by_panel(j, &b, i / parts, first * height, (end - first) * height, m);
        }
    }
}

int winograd_run(const strata_run *r)
{
    const struct winograd *s = r->state;
    const strata_epilogue *e = r->epilogue;
    struct winograd_job j = {.s = s,
                             .in = &r->in[0],
                             .out = &r->out[0],
                             .residual =
                                 e->flags & STRATA_EPILOGUE_RESIDUAL ? e->residual : NULL,
                             .bias = r->weight[1].rank > 0 ? r->weight[1].data : NULL,
                             .epilogue = e,
                             .down = (s->w.out[1] + WINOGRAD_STEP - 1) / WINOGRAD_STEP,
                             .across = (s->w.out[2] + WINOGRAD_STEP - 1) / WINOGRAD_STEP,
                             .kernels = winograd_kernels()};
    j.tiles = r->in[0].dims[0] * j.down * j.across;
    j.groups = (j.tiles + s->set->rows - 1) / s->set->rows;
    const double work =
        (double)j.tiles * WINOGRAD_SPOTS * (double)s->channels * (double)s->filters;
    const int threads = work > PARALLEL ? threads_of(s) : 1;
    if (j.tiles > 0 && s->plan.shared)
        in_common(&j, r->workspace, threads);
    else if (j.tiles > 0)
        in_blocks(&j, r->workspace, threads);
    walk_clear_pads(&r->out[0]);
    return STRATA_OK;
}
