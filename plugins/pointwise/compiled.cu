/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise by a kernel of its own for each program: the text of source.c, compiled in
 * setup. Bytes: every input once and the output once, which is what bounds it: each
 * operation is an instruction or a few, where the interpreter takes 25 to find it.
 */
#include "plugins/common/copy_ahead.cuh"
#include "plugins/common/pointwise_walk.cuh"
#include "plugins/pointwise/compiled.cuh"
#include "plugins/pointwise/nvrtc.h"

extern "C" {
extern const char source_prelude[], source_kernels[];
const char source_prelude[] =
#include "plugins/pointwise/prelude.inc"
    ;
const char source_kernels[] =
#include "plugins/pointwise/kernels.inc"
    ;
}

/* As prelude.inc has them. */
typedef walk<PROGRAM_INPUTS> program_walk;
struct program_job {
    void *y;
    const void *x[PROGRAM_INPUTS];
    int64_t size;
};

static source_kind kind_of(const strata_tensor *in, int32_t n_in,
                           const strata_tensor *out)
{
    source_kind kind = {};
    kind.dtype = float_dtype(in, n_in, out);
    kind.truth_out = out->dtype == STRATA_BOOL8;
    kind.flat = out->size == out->count;
    for (int k = 0; k < n_in; k++) {
        kind.one |= (uint32_t)(in[k].count == 1) << k;
        kind.truth |= (uint32_t)(in[k].dtype == STRATA_BOOL8) << k;
        kind.flat = kind.flat && (in[k].count == 1 || point_alike(out, &in[k]));
    }
    if (!kind.flat)
        kind.one = 0; /* a stride of 0, as where a dim stretches */
    return kind;
}

int compiled_accept(const strata_node *n)
{
    if (n->sm < 80)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "sm_%d; compiled programs need sm_80 or later", (int)n->sm);
    return nvrtc_check(n);
}

int compiled_setup(const strata_node *n, void *state)
{
    compiled_state *c = (compiled_state *)state;
    const size_t before = sizeof source_prelude - 1, behind = sizeof source_kernels;
    int status = program_parse(&c->program, n);
    if (status != STRATA_OK)
        return status;
    c->kind = kind_of(n->in, n->n_in, &n->out[0]);
    char *text = (char *)malloc(before + SOURCE_SIZE + behind);
    if (!text)
        return STRATA_FAIL(n, STRATA_ENOMEM, "a program's source");
    memcpy(text, source_prelude, before);
    const int own = source_write(text + before, SOURCE_SIZE, &c->program, &c->kind);
    if (own < 0) {
        status = STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "the program's source is over %d bytes", SOURCE_SIZE);
    } else {
        memcpy(text + before + own, source_kernels, behind);
        status =
            nvrtc_kernel(n, text, c->kind.flat ? SOURCE_FLAT : SOURCE_WALK, &c->kernel);
    }
    free(text);
    return status;
}

/* Beside the end of the kernel before, as launch_overlapped() does. */
static void launch(const strata_run *r, cudaKernel_t kernel, unsigned blocks,
                   void **arguments)
{
    cudaLaunchAttribute overlap = {};
    cudaLaunchConfig_t config = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = blocks;
    config.blockDim = SOURCE_BLOCK;
    config.stream = layer_stream(r);
    config.attrs = &overlap;
    config.numAttrs = device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
    cudaLaunchKernelExC(&config, (const void *)kernel, arguments);
}

static int run_flat(const strata_run *r, program_job *job)
{
    const compiled_state *c = (const compiled_state *)r->state;
    const int pack = c->kind.dtype == STRATA_FP32 ? 4 : 8;
    void *arguments[] = {job};
    if (!kind_of(r->in, r->n_in, &r->out[0]).flat)
        return STRATA_FAIL(r, STRATA_EINTERNAL, "operands lay alike in setup alone");
    launch(r, c->kernel,
           layer_blocks(job->size,
                        SOURCE_BLOCK * pack * source_packs(&c->program, &c->kind)),
           arguments);
    return layer_launched(r, SOURCE_FLAT);
}

static int run_walk(const strata_run *r, program_job *job)
{
    const compiled_state *c = (const compiled_state *)r->state;
    const int pack = c->kind.dtype == STRATA_FP32 ? 4 : 8;
    walk_operand operand[PROGRAM_INPUTS] = {};
    for (int k = 0; k < r->n_in; k++)
        operand[k] = point_operand(&r->out[0], &r->in[k]);
    program_walk w = walk_over<PROGRAM_INPUTS>(&r->out[0], operand);
    void *arguments[] = {job, &w};
    launch(r, c->kernel, layer_blocks(job->size, SOURCE_BLOCK * pack), arguments);
    return layer_launched(r, SOURCE_WALK);
}

int compiled_run(const strata_run *r)
{
    const compiled_state *c = (const compiled_state *)r->state;
    program_job job = {r->out[0].data, {}, r->out[0].size};
    for (int k = 0; k < r->n_in; k++)
        job.x[k] = r->in[k].data;
    return c->kind.flat ? run_flat(r, &job) : run_walk(r, &job);
}
