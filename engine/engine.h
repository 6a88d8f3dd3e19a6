/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine: an execution on a device. What the planner decided is in the execution and
 * is only read here; what it takes to run it is the engine's: the handle, for each node
 * a part with its weights on the device and its impl's state, and engines of the same
 * kind for other listed sizes. Immutable once built, and shared by threads: what a run
 * changes is in contexts (context/).
 *
 *   build      a network -> an engine, whose plan is timed where that is asked for
 *   engine     planner -> execution; then the parts, and all of it freed
 *   weights    network -> values of a node's weights, with scales folded in
 *   setup      weights to the device, and impls' setup, which packs them
 *   constant   nodes that run once, with the engine
 *   kin        parts that engines of one planner hold together
 *   share      memory that another size's engine has from the largest one's, and layers
 *              from each other
 *   batch      other listed sizes: engines inside it, which share its weights
 *   sizes      those that plans are for, and which is near
 *   version    sizes that no plan was made for: engines of a context's, which do so too
 *   step       what each step moves and does
 *   image      images into rows of inputs; labels
 *   file/      saved, and loaded without measuring or searching
 *
 * The planner is kept to explain the plan and to save it. Nothing that runs reads it.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "core/handle.h"
#include "network/options.h"
#include "planner/execution.h"
#include "planner/pack.h"

struct cost_source;
struct engine_stored;
struct engine_turns;
struct plan;
struct planner;
struct record;

/* Where a weight's data is from. */
enum part_data { DATA_NONE, DATA_LENT, DATA_IN_PLACE, DATA_OWN };

/* What a node of the execution runs with. Engines of one planner may hold it together,
 * while plans are tried. */
struct engine_part {
    size_t holders;
    size_t twins; /* of the holders: parts whose twin it is, as opposed to engines */
    /* Of which it was set up: the execution is a reference, as the state may have
     * addresses of the node's. */
    struct execution *execution;
    size_t node;
    strata_tensor *weights; /* as the node describes them; data on the device */
    enum part_data *data;   /* of each */
    void *state;            /* the impl's */
    bool set_up;
    struct pack_memory packs; /* memory given by strata.pack/1 */
    void *constant;           /* what a node that runs once made; or NULL */
    size_t constant_bytes;    /* of memory of its own, 0: it is the weight, or lent */
    bool packs_alone;         /* they differ from those of the engine's lender */
    int lender;               /* node of the lender for the same layer, or -1 */
    struct engine_part *twin; /* whose weights or packs it has, and holds; or NULL */
};

/* Parts of engines that are gone, for the next ones of their planner. */
struct engine_pool {
    strata_handle *handle;
    struct engine_part **list; /* the oldest first */
    size_t n, capacity;
    uint64_t bytes, most; /* of the device */
};

struct strata_engine {
    strata_network *network; /* a reference */
    strata_handle *handle;
    struct execution *execution;
    struct engine_part **parts; /* of each of its nodes */
    int wait;                   /* of its runs' threads: STRATA_WAIT_*, decided */
    uint64_t weight_bytes;      /* on the device, not lent */
    int64_t batch;              /* rows of a run, at most */
    int64_t *row_bytes;         /* of one row of each binding; 0: it has no such rows */
    char *only_batch; /* why at least as many too; NULL: any smaller number is right */
    int batch_symbol; /* the network's whose rows are apart, or -1 */
    int64_t sizes[NETWORK_MAX_SYMBOLS]; /* of the network's symbols */
    /* For the other combinations of listed sizes, ascending, the last symbol's fastest;
     * they have the weights that agree from this one, which is their lender. */
    strata_engine **smaller;
    size_t n_smaller;
    const strata_engine *lender;
    struct cost_source *costs; /* while it and its sizes are built: who measures */
    bool late; /* contexts may run with the lender: nothing is written to its memory */
    struct engine_turns *turns;   /* of its contexts' runs on the device */
    struct planner *planner;      /* how it was planned */
    struct engine_stored *stored; /* the file it was loaded from; NULL: built here */
};

/* context/turn.c; NULL is closed, too. */
struct engine_turns *engine_open_turns(strata_error *err);
void engine_close_turns(struct engine_turns *turns);
/* engine.c: from a plan that another engine of the network on the handle has, or might
 * have had; NULL: make one. */
int engine_build_plan(strata_engine **out, strata_handle *handle,
                      const strata_network *network, const struct plan *plan,
                      strata_error *err);
/* From a file's plan, which goes to the engine or is freed; its network. */
int engine_build_stored(strata_engine **out, strata_handle *handle,
                        const strata_network *network, struct engine_stored *stored,
                        strata_error *err);
/* For another batch than the lender's; record, which is freed in any case, is of its
 * plan, or NULL. */
int engine_build_lent(strata_engine **out, const strata_engine *lender,
                      const strata_network *network, struct record *record,
                      strata_error *err);
/* The same of a planner with a plan, which goes to the engine or is freed, made on a
 * handle of its own while contexts may run with the lender; NULL: of nobody. */
int engine_build_version(strata_engine **out, const strata_engine *lender,
                         strata_handle *handle, struct planner *planner,
                         strata_error *err);
/* An engine of another plan of kin's planner, for its sizes alone: without a planner of
 * its own, and with those parts of kin's and the pool's that are the same. */
int engine_build_kin(strata_engine **out, const strata_engine *kin,
                     const struct engine_pool *pool, const struct planner *planner,
                     const struct plan *plan, strata_error *err);
/* Such an engine whole: the planner, whose plan it now is of, goes to it, and the other
 * listed sizes are added. */
int engine_complete_kin(strata_engine *e, struct planner *planner, strata_error *err);
/* trials/trials.c: where the network's options ask for trials and the device has graphs,
 * try other plans in whole runs, for the time that they give; *engine becomes another
 * one, if that is faster. On an error *engine may be NULL. */
int engine_try_plans(strata_engine **engine, const strata_network *network,
                     strata_error *err);
/* trials/mixture.c: where [build] lets what was quantised be floats, and costs are timed
 * in place, choose again which regions are, by what they take so; *engine becomes another
 * one, if whole runs of that are faster. On an error *engine may be NULL. */
int engine_mix_in_place(strata_engine **engine, const strata_network *network,
                        strata_error *err);
/* Whether that will be done, as far as options and the device say. */
static inline bool engine_mixes_in_place(const strata_handle *handle,
                                         const struct build_options *b)
{
    return b->mixed && (b->costs.kind == COSTS_MEASURE || build_tries_plans(b)) &&
           handle->device->ops->capture_begin;
}
/* batch.c: the last step of building. */
int engine_add_sizes(strata_engine *e, strata_error *err);
void engine_free_sizes(strata_engine *e);
/* context/in_place.c: time the finished plans, where that is asked for and the device has
 * graphs, and let their executions have costs in place. Fails only if the device does. */
int engine_cost_in_place(strata_engine *e, strata_error *err);
/* Bytes of an input from which halves on the way save more than making floats of them
 * again, a launch, takes on a device. */
enum { ENGINE_HALVES = 2 << 20 };
/* Whether so many of them travel as halves: all who read the input round it, and the
 * arena, whose values no run under way needs on its stream, has room. */
static inline bool engine_sends_halves(const struct execution *x, size_t input,
                                       uint64_t bytes)
{
    return x->bindings[input].rounded && bytes >= ENGINE_HALVES &&
           bytes / 2 <= (uint64_t)x->arena_bytes;
}
/* Bytes of a binding for so many rows. */
uint64_t engine_bytes_of_rows(const strata_engine *e, size_t binding, int64_t rows);
/* Of one whose sizes are known: its batch, and bytes of a row of the bindings that have
 * rows in the whole engine. */
int engine_settle_rows(strata_engine *e, const strata_engine *whole, strata_error *err);
/* sizes.c: combinations of listed sizes; the last is the engine's own. */
size_t engine_count_plans(const strata_network *net);
void engine_plan_sizes(const strata_network *net, size_t plan, int64_t *sizes);
const strata_engine *engine_plan(const strata_engine *e, size_t plan);
/* The plan of the next larger listed sizes, or smaller ones; the batch's is larger. */
size_t engine_nearest_plan(const strata_engine *e, const int64_t *sizes, bool up);
/* Sizes at which those that are wanted run: the batch rounded up. */
void engine_run_sizes(const strata_engine *e, const int64_t *wanted, int64_t *sizes);
bool engine_has_sizes(const strata_engine *e, const int64_t *sizes);
/* version.c: one that no plan was made for: the caller's. It and its contexts use handle.
 */
int engine_make_version(strata_engine **out, const strata_engine *e,
                        strata_handle *handle, const int64_t *sizes, strata_error *err);
/* setup.c: parts of all nodes, which are set up but for those that kin and the pool have
 * (NULL: nobody has any); what there is of them goes with free. */
int engine_setup_parts(strata_engine *e, const strata_engine *kin,
                       const struct engine_pool *pool, strata_error *err);
void engine_free_parts(strata_engine *e);
/* One holder less; the last one frees it. */
void engine_release_part(strata_handle *handle, struct engine_part *part);
/* constant.c: of a node that runs once: what the lender's made that is the same, or NULL;
 * or behind its setup, and waits for it. */
void *engine_lent_constant(const strata_engine *e, size_t node);
int engine_make_constant(strata_engine *e, size_t node, strata_error *err);
/* Whether anybody reads the weight of a node that was made so. */
bool engine_keeps_weight(const struct engine_part *made);
void engine_free_constant(strata_handle *handle, struct engine_part *part);
/* kin.c: those of kin's and the pool's parts that are the engine's, too. */
void engine_take_parts(strata_engine *e, const strata_engine *kin,
                       const struct engine_pool *pool);
/* Of the device that a part has. */
uint64_t engine_part_bytes(const struct engine_part *part);
/* pool.c: hold what no other engine does, too, as far as there is room; twins of that in
 * any case. */
void engine_pool_keep(struct engine_pool *pool, const strata_engine *e);
void engine_pool_free(struct engine_pool *pool);
/* weights.c */
/* Values of a node's weight where the network has them, if the device reads that memory
 * and nothing is folded into them; else NULL. */
void *engine_weight_in_place(const strata_engine *e, const struct execution_node *n,
                             size_t weight);
/* The same whatever the device reads. */
const void *engine_weight_source(const struct execution_node *n, size_t weight);
/* Values of a weight, in host memory, with the node's fused scales folded in. */
int engine_load_weight(const strata_engine *e, const struct execution_node *n,
                       size_t weight, void *values, strata_error *err);
/* share.c, of the part of a node: */
/* Each part's node of the lender. */
void engine_find_lenders(strata_engine *e);
/* A dense weight of the lender's that is the node's too, or NULL. */
void *engine_lent_weight(const strata_engine *e, size_t node, size_t weight);
/* Memory of the lender's for the node's next packed weight; out->ptr NULL: none fits. */
int engine_borrow_pack(const strata_engine *e, size_t node, size_t bytes,
                       struct pack *out, strata_error *err);
/* After setup: if what was packed into lent memory differs, that is put back, and
 * packs_alone set: set up again. */
int engine_check_loans(strata_engine *e, size_t node, strata_error *err);
/* After setup beside runs of the lender: what is packed like its own is freed, and the
 * state, in which the address stands, has the lender's. */
int engine_adopt_packs(strata_engine *e, size_t node, strata_error *err);
/* Of an earlier node, whose layer shares that weight with the node's: its memory for the
 * weight, or NULL; and packs, after setup, as above. */
void *engine_twin_weight(strata_engine *e, size_t node, size_t weight);
int engine_unite_packs(strata_engine *e, size_t node, strata_error *err);

#endif /* ENGINE_ENGINE_H */
