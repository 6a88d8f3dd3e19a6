/* SPDX-License-Identifier: Apache-2.0
 *
 * See onednn_trial.h. Outputs are poisoned with NaN, inputs must come back unchanged, pad
 * lanes of outputs must be zero.
 */
#include "tests/layers/onednn_trial.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GUARD = 64, WORKSPACE_GUARD = 4096 }; /* floats on each side; bytes behind */

static int host_fail(strata_error *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return code;
}

static void host_log(int level, const char *format, ...)
{
    (void)level, (void)format;
}

/* The trial is reached through the node's instance pointer. */
static int pack_alloc(const strata_node *n, size_t bytes, void **out)
{
    struct trial *t = n->instance;
    *out = aligned_alloc(256, (bytes + 255) / 256 * 256);
    cr_assert(*out && (size_t)t->n_packs < LENGTH(t->packs));
    t->packs[t->n_packs++] = *out;
    return STRATA_OK;
}

static const void *host_extension(const char *id)
{
    static const strata_pack pack = {sizeof(strata_pack), 0, pack_alloc};
    return strcmp(id, STRATA_PACK_V1) == 0 ? &pack : NULL;
}

static const void *no_extension(const char *id)
{
    (void)id;
    return NULL;
}

const strata_host trial_host = {.struct_size = sizeof(strata_host),
                                .abi_major = STRATA_ABI_MAJOR,
                                .fail = host_fail,
                                .log = host_log,
                                .extension = host_extension};
const strata_host trial_bare_host = {.struct_size = sizeof(strata_host),
                                     .abi_major = STRATA_ABI_MAJOR,
                                     .fail = host_fail,
                                     .log = host_log,
                                     .extension = no_extension};

/* ---- the module ---- */

static const strata_module *module;
static uint64_t seed, random_state;

void trial_load(void)
{
    const char *folder = getenv("STRATA_PLUGIN_PATH");
    char path[4096];
    void *handle;

    snprintf(path, sizeof path, "%s/onednn.so", folder ? folder : ".");
    if (access(path, R_OK) != 0)
        cr_skip_test("onednn.so was not built (%s)", path);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    cr_assert(handle, "%s", dlerror());
    strata_entry entry = (strata_entry)(uintptr_t)dlsym(handle, STRATA_ENTRY_NAME);
    cr_assert(entry, "%s has no entry", path);
    module = entry(&trial_host);
    cr_assert(module);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = random_state = (uint64_t)now.tv_nsec << 20 | 1;
}

const strata_extends *trial_extends(const char *layer)
{
    for (uint32_t i = 0; i < module->n_extends; i++)
        if (strcmp(module->extends[i]->layer, layer) == 0)
            return module->extends[i];
    cr_assert(false, "the module does not extend %s", layer);
    return NULL;
}

static const strata_impl *impl_at(const strata_extends *e, uint32_t i)
{
    return (const strata_impl *)((const char *)e->impls.ptr + i * e->impls.stride);
}

const strata_impl *trial_impl(const strata_extends *e, const char *name)
{
    for (uint32_t i = 0; i < e->impls.n; i++)
        if (strcmp(impl_at(e, i)->name, name) == 0)
            return impl_at(e, i);
    cr_assert(false, "%s has no impl %s", e->layer, name);
    return NULL;
}

/* ---- tensors ---- */

static float random_float(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (float)((double)(random_state >> 11) / 9007199254740992.0 * 2 - 1);
}

float *trial_random(int64_t n)
{
    float *v = malloc((size_t)n * sizeof *v + 1);
    cr_assert(v);
    for (int64_t i = 0; i < n; i++)
        v[i] = random_float();
    return v;
}

int64_t trial_product(const int64_t *dims, int rank)
{
    int64_t p = 1;
    for (int d = 0; d < rank; d++)
        p *= dims[d];
    return p;
}

static strata_tensor describe(uint64_t format, const int64_t *dims, int rank)
{
    strata_tensor t = {.format = format,
                       .rank = rank,
                       .vector_dim = -1,
                       .vector = 1,
                       .count = trial_product(dims, rank)};
    int64_t stride = 1;

    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    if (format == STRATA_F32_NC8HW8 || format == STRATA_F32_NC16HW16) {
        t.vector_dim = 1;
        t.vector = format == STRATA_F32_NC8HW8 ? 8 : 16;
        stride = t.vector;
    }
    if (format == STRATA_F32_NHWC)
        t.strides[1] = 1, stride = dims[1];
    for (int d = rank - 1; d > 1; d--)
        t.strides[d] = stride, stride *= dims[d];
    if (format != STRATA_F32_NHWC && rank > 1) {
        t.strides[1] = stride;
        stride *= (dims[1] + t.vector - 1) / t.vector;
    }
    t.strides[0] = stride;
    t.size = stride * dims[0];
    return t;
}

/* Memory of t, 256-byte aligned, every float and the guards around it set to `value`. */
static void allocate(strata_tensor *t, float value)
{
    size_t floats = ((size_t)t->size + 2 * GUARD + 63) / 64 * 64;
    float *base = aligned_alloc(256, floats * sizeof *base);
    cr_assert(base);
    for (size_t i = 0; i < floats; i++)
        base[i] = value;
    t->data = base + GUARD;
}

static void release(strata_tensor *t)
{
    if (t->data)
        free((float *)t->data - GUARD);
    t->data = NULL;
}

/* Offset of the i-th element in dense linear order. */
static int64_t offset_of(const strata_tensor *t, int64_t i)
{
    int64_t index[STRATA_MAX_RANK];
    for (int d = t->rank - 1; d >= 0; d--)
        index[d] = i % t->dims[d], i /= t->dims[d];
    return strata_offset(t, index);
}

/* values in t's format, pads zero; NULL values: absent */
static strata_tensor place(uint64_t format, const int64_t *dims, int rank,
                           const float *values)
{
    strata_tensor t = describe(format, dims, rank);
    allocate(&t, 0);
    for (int64_t i = 0; i < t.count; i++)
        ((float *)t.data)[offset_of(&t, i)] = values[i];
    return t;
}

static double activate(int kind, double x, double a, double b)
{
    switch (kind) {
    case STRATA_RELU:
        return fmax(x, 0);
    case STRATA_LEAKY_RELU:
        return x > 0 ? x : a * x;
    case STRATA_RELU6:
        return fmin(fmax(x, 0), 6);
    case STRATA_CLIP:
        return fmin(fmax(x, a), b);
    case STRATA_SIGMOID:
        return 1 / (1 + exp(-x));
    case STRATA_TANH:
        return tanh(x);
    case STRATA_ELU:
        return x > 0 ? x : a * expm1(x);
    case STRATA_SELU:
        return b * (x > 0 ? x : a * expm1(x));
    case STRATA_SOFTPLUS:
        return log1p(exp(-fabs(x))) + fmax(x, 0);
    case STRATA_GELU:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case STRATA_SILU:
        return x / (1 + exp(-x));
    case STRATA_HARD_SIGMOID:
        return fmin(fmax(a * x + b, 0), 1);
    case STRATA_HARD_SWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case STRATA_MISH:
        return x * tanh(log1p(exp(x)));
    case STRATA_GELU_TANH:
        return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case STRATA_SWISH:
        return x / (1 + exp(-a * x));
    default:
        cr_assert(false, "no reference for activation %d", kind);
        return NAN;
    }
}

void problem_epilogue(struct problem *p)
{
    int64_t count = trial_product(p->out_dims, p->out_rank);
    int64_t plane = trial_product(p->out_dims + 2, p->out_rank - 2);
    for (int64_t i = 0; i < count; i++) {
        int64_t c = i / plane % p->out_dims[1];
        double x = p->expected[i], m = p->magnitude[i];
        if (p->flags & STRATA_EPILOGUE_SCALE)
            x *= p->scale[c], m *= fabs((double)p->scale[c]);
        if (p->flags & STRATA_EPILOGUE_BIAS)
            x += p->shift[c], m += 1;
        if (p->flags & STRATA_EPILOGUE_RESIDUAL)
            x += p->residual[i], m += 1;
        if (p->flags & STRATA_EPILOGUE_ACTIVATION)
            x = activate(p->activation, x, p->alpha, p->beta), m += 10;
        p->expected[i] = x, p->magnitude[i] = m;
    }
}

void problem_answer(struct problem *p)
{
    int64_t count = trial_product(p->out_dims, p->out_rank);
    p->expected = calloc((size_t)count, sizeof(double));
    p->magnitude = calloc((size_t)count, sizeof(double));
    cr_assert(p->expected && p->magnitude);
}

void problem_add_operands(struct problem *p)
{
    p->scale = trial_random(p->out_dims[1]);
    p->shift = trial_random(p->out_dims[1]);
    p->residual = trial_random(trial_product(p->out_dims, p->out_rank));
}

void problem_free(struct problem *p)
{
    free(p->input), free(p->weight), free(p->bias);
    free(p->scale), free(p->shift), free(p->residual);
    free(p->expected), free(p->magnitude);
}

/* ---- running a problem through one impl in one pair of formats ---- */

void *trial_workspace(size_t bytes)
{
    unsigned char *w = aligned_alloc(256, (bytes + WORKSPACE_GUARD + 255) / 256 * 256);
    cr_assert(w);
    memset(w, 0xff, bytes + WORKSPACE_GUARD);
    return w;
}

bool trial_workspace_intact(const struct trial *t)
{
    const unsigned char *w = t->workspace;
    for (size_t i = 0; i < WORKSPACE_GUARD; i++)
        if (w[t->workspace_size + i] != 0xff)
            return false;
    return true;
}

void trial_open(struct trial *t, const struct problem *p, const strata_impl *impl,
                uint64_t in, uint64_t out)
{
    *t = (struct trial){.p = p, .impl = impl};
    t->in = place(in, p->in_dims, p->rank, p->input);
    t->out = describe(out, p->out_dims, p->out_rank);
    allocate(&t->out, NAN);
    if (p->weight)
        t->weight[0] = place(STRATA_F32_NCHW, p->weight_dims, p->weight_rank, p->weight);
    if (p->bias)
        t->weight[1] = place(STRATA_F32_NCHW, p->out_dims + 1, 1, p->bias);
    if (p->residual)
        t->residual = place(out, p->out_dims, p->out_rank, p->residual);
    t->epilogue = (strata_epilogue){p->flags, p->activation, p->alpha,    p->beta,
                                    p->scale, p->shift,      &t->residual};
    t->node = (strata_node){.struct_size = sizeof(strata_node),
                            .n_in = 1,
                            .n_out = 1,
                            .n_weights = p->weight ? 2 : 0,
                            .params = p->params,
                            .in = &t->in,
                            .out = &t->out,
                            .weight = t->weight,
                            .epilogue = &t->epilogue,
                            .device = STRATA_HOST,
                            .instance = t,
                            .host = &trial_host,
                            .err = &t->error};
    t->state = calloc(1, impl->state_size);
    t->ctx = calloc(1, impl->ctx_size);
    cr_assert(t->state && t->ctx);
}

int trial_setup(struct trial *t)
{
    int status;
    t->workspace_size = t->impl->workspace(&t->node);
    if (t->workspace_size == SIZE_MAX)
        return t->error.code;
    t->workspace = trial_workspace(t->workspace_size);
    status = t->impl->setup(&t->node, t->state);
    return status ? status : t->impl->ctx_open(&t->node, t->state, t->ctx);
}

strata_run trial_call(struct trial *t)
{
    return (strata_run){.struct_size = sizeof(strata_run),
                        .n_in = 1,
                        .n_out = 1,
                        .n_weights = t->node.n_weights,
                        .params = t->node.params,
                        .state = t->state,
                        .ctx = t->ctx,
                        .in = &t->in,
                        .out = &t->out,
                        .weight = t->weight,
                        .epilogue = &t->epilogue,
                        .workspace = t->workspace_size ? t->workspace : NULL,
                        .workspace_size = t->workspace_size,
                        .host = &trial_host,
                        .err = &t->error};
}

void trial_close(struct trial *t)
{
    t->impl->ctx_close(t->ctx);
    t->impl->teardown(t->state);
    free(t->state), free(t->ctx), free(t->workspace);
    release(&t->in), release(&t->out), release(&t->residual);
    release(&t->weight[0]), release(&t->weight[1]);
    for (int i = 0; i < t->n_packs; i++)
        free(t->packs[i]);
}

void trial_expect_values(const struct trial *t, const char *what)
{
    const struct problem *p = t->p;
    double worst = 0, got = 0, wanted = 0;
    for (int64_t i = 0; i < t->out.count; i++) {
        double y = ((float *)t->out.data)[offset_of(&t->out, i)];
        double error = fabs(y - p->expected[i]) / (p->magnitude[i] + 1e-3);
        if (!(error <= worst))
            worst = error, got = y, wanted = p->expected[i];
    }
    cr_expect(worst <= 2e-6, "%s, seed %llu: %g, wanted %g, relative error %g", what,
              (unsigned long long)seed, got, wanted, worst);
}

static void expect_pads_and_guards(const struct trial *t, const char *what)
{
    const float *y = t->out.data;
    bool *real = calloc((size_t)t->out.size, sizeof *real);
    cr_assert(real);
    for (int64_t i = 0; i < t->out.count; i++)
        real[offset_of(&t->out, i)] = true;
    for (int64_t i = 0; i < t->out.size; i++)
        if (!real[i] && y[i] != 0) {
            cr_expect(false, "%s: pad at %lld is %g", what, (long long)i, (double)y[i]);
            break;
        }
    for (int i = 1; i <= GUARD; i++)
        cr_assert(isnan(y[-i]), "%s: wrote %d before the output", what, i);
    for (int64_t i = t->out.size; i < t->out.size + GUARD; i++)
        cr_assert(isnan(y[i]), "%s: wrote after the output", what);
    free(real);
}

static bool same_values(const strata_tensor *t, const float *values)
{
    strata_tensor fresh = place(t->format, t->dims, t->rank, values);
    bool same = memcmp(fresh.data, t->data, (size_t)t->size * sizeof(float)) == 0;
    release(&fresh);
    return same;
}

bool trial_attempt(const struct problem *p, const strata_impl *impl, uint64_t in,
                   uint64_t out)
{
    struct trial t;
    char what[256];
    int status;

    snprintf(what, sizeof what, "%s by %s, formats %#llx to %#llx, epilogue %d/%d",
             p->name, impl->name, (unsigned long long)in, (unsigned long long)out,
             p->flags, p->activation);
    trial_open(&t, p, impl, in, out);
    status = impl->accept(&t.node);
    if (status != STRATA_OK) {
        cr_expect(status == STRATA_EUNSUPPORTED && t.error.text[0], "%s: veto %d, \"%s\"",
                  what, status, t.error.text);
        trial_close(&t);
        return false;
    }
    cr_assert(trial_setup(&t) == STRATA_OK, "%s: %s", what, t.error.text);
    strata_run r = trial_call(&t);
    for (int again = 0; again < 2; again++)
        cr_assert(impl->run(&r) == STRATA_OK, "%s: %s", what, t.error.text);
    trial_expect_values(&t, what);
    expect_pads_and_guards(&t, what);
    cr_expect(trial_workspace_intact(&t), "%s: wrote behind the workspace", what);
    cr_expect(same_values(&t.in, p->input), "%s: changed its input", what);
    cr_expect(!p->weight || same_values(&t.weight[0], p->weight),
              "%s: changed its weight", what);
    cr_expect(!p->residual || same_values(&t.residual, p->residual),
              "%s: changed the residual", what);
    trial_close(&t);
    return true;
}

/* Trials are of floats; rows of bytes are tried by the layer's cases (tests/plugins/). */
#define BYTES (STRATA_I8_NHWC | STRATA_U8_NHWC)

uint64_t trial_attempt_all(const struct problem *p)
{
    uint64_t taken = 0;
    for (uint32_t i = 0; i < p->layer->impls.n; i++) {
        const strata_impl *impl = impl_at(p->layer, i);
        const strata_row *rows = impl->rows.ptr;
        for (uint32_t r = 0; r < impl->rows.n; r++)
            for (int a = 0; a < STRATA_FORMAT_COUNT; a++)
                for (int b = 0; b < STRATA_FORMAT_COUNT; b++) {
                    uint64_t in = UINT64_C(1) << a, out = UINT64_C(1) << b;
                    uint64_t gives = rows[r].out[0] == STRATA_SAME ? in : rows[r].out[0];
                    if ((rows[r].in[0] & in & ~BYTES) && (gives & out) &&
                        trial_attempt(p, impl, in, out))
                        taken |= out;
                }
    }
    return taken;
}
