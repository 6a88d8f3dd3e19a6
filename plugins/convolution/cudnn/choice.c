/* SPDX-License-Identifier: Apache-2.0
 *
 * From a problem to plans: the graph, what the heuristics list for it, the rules, then a
 * plan for each configuration until there are enough. A configuration that cuDNN lists
 * and then refuses to plan is passed over.
 */
#include "plugins/convolution/cudnn/choice.h"

#include <strata/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIGURATIONS 64 /* looked at of one list */
#define COMPILED 2        /* plans that may take a second each */
#define KNOBS 32
#define NOTES 16

/* Kernels that round in other ways than a sum of FP32 products. */
#define FORBIDDEN                                                                        \
    (1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |                                    \
     1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION |                            \
     1u << CUDNN_NUMERICAL_NOTE_FFT | 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC |      \
     1u << CUDNN_NUMERICAL_NOTE_WINOGRAD |                                               \
     1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 |                                      \
     1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 |                                      \
     1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13)

/* ---- asking a configuration -------------------------------------------------------- */

static unsigned notes(cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type)
{
    int32_t values[NOTES];
    int64_t n = 0;
    unsigned mask = 0;
    if (cudnnBackendGetAttribute(engine, name, type, NOTES, &n, values) !=
        CUDNN_STATUS_SUCCESS)
        return ~0u; /* unknown: forbidden */
    for (int64_t i = 0; i < n && i < NOTES; i++)
        mask |= 1u << values[i];
    return mask;
}

static void describe_knobs(struct cudnn_builder *b, cudnnBackendDescriptor_t config,
                           struct cudnn_plan *plan)
{
    cudnnBackendDescriptor_t choices[KNOBS];
    int64_t n = 0, one;
    size_t length = 0;
    for (int i = 0; i < KNOBS; i++)
        choices[i] =
            cudnn_make(b, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "engine configuration");
    if (b->status == CUDNN_STATUS_SUCCESS)
        b->status =
            cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, &n, choices);
    for (int64_t i = 0; i < n && i < KNOBS && b->status == CUDNN_STATUS_SUCCESS; i++) {
        cudnnBackendKnobType_t knob;
        int64_t value;
        if (cudnnBackendGetAttribute(choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                     CUDNN_TYPE_KNOB_TYPE, 1, &one, &knob) ||
            cudnnBackendGetAttribute(choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                     CUDNN_TYPE_INT64, 1, &one, &value) ||
            length >= sizeof plan->knobs)
            break;
        length +=
            (size_t)snprintf(plan->knobs + length, sizeof plan->knobs - length,
                             "%s%d=%lld", i ? " " : "", (int)knob, (long long)value);
    }
}

/* Engine, knobs and notes of a configuration; false where the rules forbid it. */
static bool inspect(const struct cudnn_problem *p, cudnnBackendDescriptor_t config,
                    struct cudnn_plan *plan)
{
    struct cudnn_builder b = {0};
    int64_t one = 0;
    unsigned numerical = ~0u, forbidden = FORBIDDEN;
    cudnnBackendDescriptor_t engine =
        cudnn_make(&b, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
    if (b.status == CUDNN_STATUS_SUCCESS)
        b.status =
            cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine);
    if (b.status == CUDNN_STATUS_SUCCESS)
        b.status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                            CUDNN_TYPE_INT64, 1, &one, &plan->engine);
    if (b.status == CUDNN_STATUS_SUCCESS) {
        numerical =
            notes(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
        plan->compiled =
            notes(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE) &
            1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
        describe_knobs(&b, config, plan);
    }
    if (!p->tensor_cores)
        forbidden |= 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    cudnn_builder_clear(&b);
    return b.status == CUDNN_STATUS_SUCCESS && !(numerical & forbidden);
}

/* ---- plans ------------------------------------------------------------------------- */

static bool is_new(const struct cudnn_choice *c, const struct cudnn_plan *plan)
{
    for (int i = 0; i < c->n; i++)
        if (c->plans[i].engine == plan->engine &&
            strcmp(c->plans[i].knobs, plan->knobs) == 0)
            return false;
    return true;
}

static bool make_plan(const struct cudnn_target *t, cudnnBackendDescriptor_t config,
                      struct cudnn_plan *plan)
{
    struct cudnn_builder b = {0};
    int64_t one = 0, bytes = 0;
    cudnnBackendDescriptor_t d =
        cudnn_make(&b, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
    cudnn_set(&b, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    if (t->handle)
        cudnn_set(&b, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                  &t->handle);
    else
        cudnn_set(&b, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &t->properties);
    cudnn_finalize(&b, d);
    if (b.status == CUDNN_STATUS_SUCCESS)
        b.status = cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                            CUDNN_TYPE_INT64, 1, &one, &bytes);
    if (b.status != CUDNN_STATUS_SUCCESS || pthread_mutex_init(&plan->lock, NULL) != 0) {
        cudnn_builder_clear(&b);
        return false;
    }
    plan->descriptor = d;
    plan->workspace = (size_t)bytes;
    return true;
}

static bool wanted(const struct cudnn_choice *c, const struct cudnn_plan *plan,
                   bool compiled)
{
    return plan->compiled == compiled && c->n < (compiled ? COMPILED : CUDNN_TACTICS) &&
           is_new(c, plan);
}

static void take(struct cudnn_choice *c, const struct cudnn_target *t,
                 const cudnnBackendDescriptor_t *configs, int64_t n, bool compiled)
{
    for (int64_t i = 0; i < n && c->n < CUDNN_TACTICS; i++) {
        struct cudnn_plan *plan = &c->plans[c->n];
        memset(plan, 0, sizeof *plan);
        if (inspect(&c->problem, configs[i], plan) && wanted(c, plan, compiled) &&
            make_plan(t, configs[i], plan))
            c->n++;
    }
}

/* ---- heuristics -------------------------------------------------------------------- */

struct list {
    cudnnBackendDescriptor_t configs[CONFIGURATIONS];
    int made;  /* descriptors */
    int64_t n; /* filled in */
};

/* No list is no error: cuDNN may know nothing for a mode. */
static void ask(struct list *l, const struct cudnn_target *t,
                cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
    struct cudnn_builder b = {0};
    cudnnBackendDescriptor_t d =
        cudnn_make(&b, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
    cudnn_set(&b, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              1, &graph);
    cudnn_set(&b, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (t->properties)
        cudnn_set(&b, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  1, &t->properties);
    cudnn_finalize(&b, d);
    while (b.status == CUDNN_STATUS_SUCCESS && l->made < CONFIGURATIONS) {
        b.status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                                &l->configs[l->made]);
        l->made += b.status == CUDNN_STATUS_SUCCESS;
    }
    if (b.status == CUDNN_STATUS_SUCCESS &&
        cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGURATIONS, &l->n,
                                 l->configs) != CUDNN_STATUS_SUCCESS)
        l->n = 0;
    if (l->n > CONFIGURATIONS)
        l->n = CONFIGURATIONS;
    cudnn_builder_clear(&b);
}

static void clear(struct list *l)
{
    for (int i = 0; i < l->made; i++)
        cudnnBackendDestroyDescriptor(l->configs[i]);
}

/* A convolution that is not depthwise, with an activation that hardly a kernel at hand
 * takes: modes A and B look for a fifth of a second each to list what is then compiled,
 * and that takes 1.2 to 2.6 times as long as ours do with tensor cores. */
static bool must_be_compiled(const struct cudnn_problem *p)
{
    const bool dense = p->w.dims[1] == p->x.dims[1];
    return dense && p->tensor_cores && p->type != CUDNN_DATA_FLOAT &&
           p->activation >= 0 && p->activation != STRATA_RELU &&
           p->activation != STRATA_RELU6;
}

static void fill(struct cudnn_choice *c, const struct cudnn_target *t)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B,
                                                   CUDNN_HEUR_MODE_FALLBACK};
    enum { MODES = sizeof modes / sizeof modes[0], FALLBACK = MODES - 1 };
    const bool brief = must_be_compiled(&c->problem);
    struct list lists[MODES] = {0};
    char text[sizeof c->reason - 64] = "";
    cudnnBackendDescriptor_t graph = cudnn_graph(&c->graph, &c->problem, t->handle);
    if (c->graph.status != CUDNN_STATUS_SUCCESS) {
        cudnnGetLastErrorString(text, sizeof text);
        snprintf(c->reason, sizeof c->reason, "%s: cuDNN says %s %s", c->graph.what,
                 cudnnGetErrorString(c->graph.status), text);
        return;
    }
    for (int m = brief ? FALLBACK : 0; m < MODES && c->n < CUDNN_TACTICS; m++) {
        ask(&lists[m], t, graph, modes[m]);
        take(c, t, lists[m].configs, lists[m].n, false);
    }
    for (int m = 0; m < MODES && c->n < COMPILED && !brief; m++)
        if (c->n == 0 || c->plans[0].compiled)
            take(c, t, lists[m].configs, lists[m].n, true);
    for (int m = 0; m < MODES; m++)
        clear(&lists[m]);
    if (c->n == 0)
        snprintf(c->reason, sizeof c->reason,
                 "cuDNN %zu has no kernel for this shape in these formats%s",
                 cudnnGetVersion(),
                 brief                     ? " and with this activation at hand"
                 : c->problem.tensor_cores ? ""
                                           : " without tensor cores");
}

struct cudnn_choice *cudnn_choose(const struct cudnn_target *target,
                                  const struct cudnn_problem *problem)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct cudnn_choice *choices;
    pthread_mutex_lock(&lock);
    struct cudnn_choice *c = choices;
    while (c && (c->device != target->device ||
                 memcmp(&c->problem, problem, sizeof *problem) != 0))
        c = c->next;
    if (!c && (c = calloc(1, sizeof *c))) {
        c->device = target->device;
        c->problem = *problem;
        fill(c, target);
        c->next = choices;
        choices = c;
    }
    pthread_mutex_unlock(&lock);
    return c;
}
