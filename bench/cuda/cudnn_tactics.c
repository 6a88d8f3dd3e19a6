/* SPDX-License-Identifier: Apache-2.0
 *
 * How good the order is in which cuDNN lists its kernels: every convolution of ResNet-50
 * with its epilogue, in FP16 channels-last, timed with each plan of the list. Launches
 * are captured into a graph over rotating buffers, so host time does not count.
 *
 *   cudnn_tactics [batch...]          default: 1 8 32 128
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugins/convolution/cudnn/session.h"

enum { SETS = 3, BURST = 12, ROUNDS = 5, PATTERN = 1 << 20 };
#define PEAK 780e12 /* operations a second that such chips sustain */
#define COPY 4.2e12 /* bytes a second */

static const struct layer {
    int c, size, k, kernel, stride, residual, relu, count;
} layers[] = {
    {8, 224, 64, 7, 2, 0, 1, 1},    {64, 56, 64, 1, 1, 0, 1, 1},
    {64, 56, 64, 3, 1, 0, 1, 3},    {64, 56, 256, 1, 1, 1, 1, 3},
    {64, 56, 256, 1, 1, 0, 0, 1},   {256, 56, 64, 1, 1, 0, 1, 2},
    {256, 56, 128, 1, 1, 0, 1, 1},  {128, 56, 128, 3, 2, 0, 1, 1},
    {128, 28, 512, 1, 1, 1, 1, 4},  {256, 56, 512, 1, 2, 0, 0, 1},
    {512, 28, 128, 1, 1, 0, 1, 3},  {128, 28, 128, 3, 1, 0, 1, 3},
    {512, 28, 256, 1, 1, 0, 1, 1},  {256, 28, 256, 3, 2, 0, 1, 1},
    {256, 14, 1024, 1, 1, 1, 1, 6}, {512, 28, 1024, 1, 2, 0, 0, 1},
    {1024, 14, 256, 1, 1, 0, 1, 5}, {256, 14, 256, 3, 1, 0, 1, 5},
    {1024, 14, 512, 1, 1, 0, 1, 1}, {512, 14, 512, 3, 2, 0, 1, 1},
    {512, 7, 2048, 1, 1, 1, 1, 3},  {1024, 14, 2048, 1, 2, 0, 0, 1},
    {2048, 7, 512, 1, 1, 0, 1, 2},  {512, 7, 512, 3, 1, 0, 1, 2},
};
enum { LAYERS = sizeof layers / sizeof layers[0] };

struct buffers {
    char *data[SETS][CUDNN_OPERANDS];
    void *workspace;
    size_t workspace_size;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return 0;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    return -1;
}

/* ---- problems ---------------------------------------------------------------------- */

static void channels_last(struct cudnn_shape *s, int64_t n, int64_t c, int64_t h)
{
    const int64_t dims[] = {n, c, h, h, 0}, strides[] = {c * h * h, 1, h * c, c, 0};
    memcpy(s->dims, dims, sizeof dims);
    memcpy(s->strides, strides, sizeof strides);
}

static int64_t elements(const struct cudnn_shape *s)
{
    return s->dims[0] * s->dims[1] * s->dims[2] * s->dims[3];
}

static void make_problem(struct cudnn_problem *p, const struct layer *l, int batch)
{
    const int pad = l->kernel / 2, out = (l->size + 2 * pad - l->kernel) / l->stride + 1;
    memset(p, 0, sizeof *p);
    p->rank = 4;
    p->type = CUDNN_DATA_HALF;
    p->tensor_cores = 1;
    p->operands = 1 << CUDNN_BIAS | (l->residual ? 1 << CUDNN_RESIDUAL : 0);
    p->activation = l->relu ? 0 : -1;
    channels_last(&p->x, batch, l->c, l->size);
    channels_last(&p->w, l->k, l->c, l->kernel);
    channels_last(&p->y, batch, l->k, out);
    for (int d = 0; d < 2; d++) {
        p->begin[d] = p->end[d] = pad;
        p->stride[d] = l->stride;
        p->dilation[d] = 1;
    }
}

/* us that neither memory nor arithmetic allows to beat. */
static double floor_us(const struct cudnn_problem *p)
{
    const double y = (double)elements(&p->y), w = (double)elements(&p->w);
    const double sums = p->operands & 1 << CUDNN_RESIDUAL ? y : 0;
    const double bytes = 2 * ((double)elements(&p->x) + w + y + sums);
    const double operations = 2 * y * w / (double)p->w.dims[0];
    const double memory = bytes / COPY, arithmetic = operations / PEAK;
    return 1e6 * (memory > arithmetic ? memory : arithmetic);
}

/* ---- buffers ----------------------------------------------------------------------- */

static void free_buffers(struct buffers *b)
{
    for (int s = 0; s < SETS; s++)
        for (int i = 0; i < CUDNN_OPERANDS; i++)
            cudaFree(b->data[s][i]);
    cudaFree(b->workspace);
    memset(b, 0, sizeof *b);
}

static int fill_buffer(char **out, size_t bytes, const char *pattern)
{
    if (check(cudaMalloc((void **)out, bytes), "memory"))
        return -1;
    for (size_t at = 0; at < bytes; at += PATTERN)
        if (check(cudaMemcpy(*out + at, pattern,
                             bytes - at < PATTERN ? bytes - at : PATTERN,
                             cudaMemcpyHostToDevice),
                  "fill"))
            return -1;
    return 0;
}

static int make_buffers(struct buffers *b, const struct cudnn_choice *c,
                        const char *pattern)
{
    const struct cudnn_problem *p = &c->problem;
    const int64_t sizes[CUDNN_OPERANDS] = {
        [CUDNN_X] = elements(&p->x),        [CUDNN_W] = elements(&p->w),
        [CUDNN_Y] = elements(&p->y),        [CUDNN_BIAS] = p->y.dims[1],
        [CUDNN_RESIDUAL] = elements(&p->y),
    };
    for (int i = 0; i < c->n; i++)
        if (c->plans[i].workspace > b->workspace_size)
            b->workspace_size = c->plans[i].workspace;
    if (b->workspace_size &&
        check(cudaMalloc(&b->workspace, b->workspace_size), "workspace"))
        return -1;
    for (int s = 0; s < SETS; s++)
        for (int i = 0; i < CUDNN_OPERANDS; i++)
            if (fill_buffer(&b->data[s][i], 2 * (size_t)sizes[i], pattern))
                return -1;
    return 0;
}

/* ---- timing ------------------------------------------------------------------------ */

static cudnnBackendDescriptor_t make_pack(struct cudnn_builder *b,
                                          const struct cudnn_problem *p,
                                          const struct buffers *m, int set)
{
    int64_t ids[CUDNN_OPERANDS], n = 0;
    void *pointers[CUDNN_OPERANDS];
    for (int i = 0; i < CUDNN_OPERANDS; i++)
        if (i <= CUDNN_Y || p->operands & 1 << i) {
            ids[n] = i;
            pointers[n++] = m->data[set][i];
        }
    cudnnBackendDescriptor_t d =
        cudnn_make(b, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "tensors");
    cudnn_set(b, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    cudnn_set(b, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n,
              pointers);
    cudnn_set(b, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
              &m->workspace);
    cudnn_finalize(b, d);
    return d;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* us of a launch within a graph of them; negative: it failed. */
static double time_graph(cudaStream_t stream, cudaGraphExec_t graph)
{
    cudaEvent_t from, to;
    float ms[ROUNDS];
    if (cudaEventCreate(&from) || cudaEventCreate(&to))
        return -1;
    for (int r = -1; r < ROUNDS; r++) {
        cudaEventRecord(from, stream);
        cudaGraphLaunch(graph, stream);
        cudaEventRecord(to, stream);
        if (cudaEventSynchronize(to) != cudaSuccess)
            return -1;
        if (r >= 0)
            cudaEventElapsedTime(&ms[r], from, to);
    }
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    qsort(ms, ROUNDS, sizeof ms[0], by_value);
    return (double)ms[ROUNDS / 2] * 1e3 / BURST;
}

/* us; *first_ms: of the first run, which may load code. */
static double time_plan(struct cudnn_session *s, cudaStream_t stream,
                        struct cudnn_plan *plan, const struct cudnn_problem *p,
                        const struct buffers *m, double *first_ms)
{
    struct cudnn_builder b = {0};
    cudnnBackendDescriptor_t packs[SETS];
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    double us = -1, start = now_ms();
    for (int i = 0; i < SETS; i++)
        packs[i] = make_pack(&b, p, m, i);
    cudnnStatus_t status = b.status;
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn_session_run(s, stream, plan, packs[0]);
    if (status != CUDNN_STATUS_SUCCESS || cudaStreamSynchronize(stream) != cudaSuccess)
        goto done;
    *first_ms = now_ms() - start;
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        goto done;
    for (int i = 0; i < BURST && status == CUDNN_STATUS_SUCCESS; i++)
        status = cudnn_session_run(s, stream, plan, packs[i % SETS]);
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess ||
        status != CUDNN_STATUS_SUCCESS ||
        cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess)
        goto done;
    us = time_graph(stream, exec);
done:
    if (us < 0)
        printf("  engine %lld {%s}: cuDNN %s, CUDA %s\n", (long long)plan->engine,
               plan->knobs, cudnnGetErrorString(status),
               cudaGetErrorString(cudaGetLastError()));
    if (exec)
        cudaGraphExecDestroy(exec);
    if (graph)
        cudaGraphDestroy(graph);
    cudnn_builder_clear(&b);
    return us;
}

/* ---- the table --------------------------------------------------------------------- */

enum { CUTS = 6 };
static const int cuts[CUTS] = {1, 2, 4, 8, 16, CUDNN_TACTICS};

struct session {
    struct cudnn_session *cudnn;
    cudaStream_t stream;
    const char *pattern;
};

/* Best of the first cuts[i] plans goes to best[i], in us. */
static int time_layer(struct session *s, const struct layer *l, int batch,
                      double best[CUTS], double *floor)
{
    struct cudnn_problem p;
    struct cudnn_target target;
    struct buffers m = {0};
    double first = 0, slowest_first = 0, lowest = 1e30;
    int winner = -1, status = -1;
    make_problem(&p, l, batch);
    *floor = floor_us(&p);
    if (cudnn_current_target(&target) != CUDNN_STATUS_SUCCESS)
        return -1;
    const double start = now_ms();
    struct cudnn_choice *c = cudnn_choose(&target, &p);
    const double planning = now_ms() - start;
    if (!c || c->n == 0 || make_buffers(&m, c, s->pattern))
        goto done;
    for (int i = 0, cut = 0; i < c->n; i++) {
        const double us = time_plan(s->cudnn, s->stream, &c->plans[i], &p, &m, &first);
        if (first > slowest_first)
            slowest_first = first;
        if (us > 0 && us < lowest) {
            lowest = us;
            winner = i;
        }
        while (cut < CUTS && (i + 1 == cuts[cut] || i + 1 == c->n))
            best[cut++] = lowest;
    }
    if (winner < 0)
        goto done;
    printf("%4d %4d %3d %4d %dx%d/%d %c%c x%d %8.1f ", batch, l->c, l->size, l->k,
           l->kernel, l->kernel, l->stride, l->residual ? '+' : ' ', l->relu ? 'r' : ' ',
           l->count, *floor);
    for (int i = 0; i < CUTS; i++)
        printf("%8.2f", best[i]);
    printf("  #%d of %d: %lld {%s}%s ws %zu, plans %.1f ms, first %.1f ms\n", winner,
           c->n, (long long)c->plans[winner].engine, c->plans[winner].knobs,
           c->plans[winner].compiled ? " compiled" : "", c->plans[winner].workspace,
           planning, slowest_first);
    fflush(stdout);
    status = 0;
done:
    if (status)
        fprintf(stderr, "batch %d, layer %d: %s\n", batch, (int)(l - layers),
                c ? c->reason : "no memory");
    free_buffers(&m);
    return status;
}

static int time_batch(struct session *s, int batch)
{
    double sums[CUTS] = {0}, floors = 0;
    for (int i = 0; i < LAYERS; i++) {
        double best[CUTS] = {0}, floor;
        if (time_layer(s, &layers[i], batch, best, &floor))
            return -1;
        floors += layers[i].count * floor;
        for (int k = 0; k < CUTS; k++)
            sums[k] += layers[i].count * best[k];
    }
    printf("batch %d, all convolutions, us: floors %.1f, best of first", batch, floors);
    for (int k = 0; k < CUTS; k++)
        printf(" %d: %.1f%s", cuts[k], sums[k], k + 1 < CUTS ? "," : "\n");
    return 0;
}

int main(int argc, char **argv)
{
    static const int usual[] = {1, 8, 32, 128};
    static char pattern[PATTERN];
    struct session s = {.pattern = pattern};
    int status = 0;
    for (int i = 0; i < PATTERN; i += 2) { /* halves of either sign, 0.25 to 1 */
        pattern[i] = (char)rand();
        pattern[i + 1] = (char)((rand() & 0x80) | 0x34 | (rand() & 7));
    }
    if (check(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking), "stream"))
        return 3;
    if (cudnn_session_open(s.stream, &s.cudnn) != CUDNN_STATUS_SUCCESS) {
        fprintf(stderr, "cuDNN does not open\n");
        return 3;
    }
    printf("cuDNN %zu. Times in us: floor, then best of the first 1, 2, 4, 8, 16, %d\n",
           cudnnGetVersion(), CUDNN_TACTICS);
    for (int i = 1; i < argc && !status; i++)
        status = time_batch(&s, atoi(argv[i]));
    for (int i = 0; i < 4 && argc < 2 && !status; i++)
        status = time_batch(&s, usual[i]);
    return status ? 1 : 0;
}
