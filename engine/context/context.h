/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a context.
 *
 *   context       creation, and its runs
 *   enter         who may be inside
 *   bind          where the inputs, outputs and values are
 *   sizes         the sizes of the next runs, for each of which one is inside it
 *   copy          inputs and outputs from and to the host
 *   parts         runs of an application's parts, whose rows gather moves
 *   enqueue       whole runs, put on the stream and waited for
 *   turn          one behind the other, of several contexts on a device
 *   run           one of the engine's steps, put on the stream
 *   steps         several, one by one
 *   graph         the same steps as device graphs
 *   profile       the same, watched
 *   in_place      what each step costs where it stands, of a finished engine
 *   beginnings    of a run, timed for that
 *   settle        the end of runs, which the profiler is told
 *   state         what is kept from run to run
 *   room          whether that is in order
 *   check         STRATA_CHECK=1: each node under guard
 *   check_tensor  what a check finds in a tensor
 *   guard         the memory between guards, and the words for what is found
 */
#ifndef ENGINE_CONTEXT_CONTEXT_H
#define ENGINE_CONTEXT_CONTEXT_H

#include <stdatomic.h>

#include <strata/parts.h>

#include "engine/engine.h"

struct context_node {
    strata_run run;
    strata_tensor *in, *out, residual;
    strata_epilogue epilogue;
    void *ctx;
    bool opened;
    bool uncaptured; /* by its impl's flags, or because capturing it failed */
};

/* Steps from first to before end. */
struct context_segment {
    size_t first, end;
    void *graph; /* NULL: put on the stream one by one */
};

/* All steps. */
struct context_graph {
    struct context_segment *segments;
    size_t n, capacity; /* n = 0: not captured */
};

/* Of an application that watches the runs. */
struct context_profile {
    strata_profiler caller;
    strata_event *
        *events;  /* before the first step, and behind each that does something */
    bool pending; /* a run is under way that is to be reported */
};

/* Of runs that wait, on the device, for the one before of another context. */
struct context_turn {
    int use;           /* STRATA_TURNS_* */
    strata_event *ran; /* after the last run that took one; NULL: none did */
    bool taken;        /* this thread has it */
};

/* Of an application's calls; bytes. */
struct context_calls {
    uint64_t runs, copied_in, copied_out, cross_device, in_place;
};

struct strata_context {
    const strata_engine *engine;
    const struct execution *execution; /* the engine's */
    strata_handle *handle;
    strata_stream *stream;
    void *arena;
    void **own;        /* memory of bindings that the caller has not bound */
    void **bound;      /* by the caller, or NULL */
    char **value_data; /* where each value is */
    struct context_node *nodes;
    strata_tensor *tensors; /* storage of the nodes' in and out */
    /* Made for the pointers as they are; the second is parted where the inputs have been
     * read, for runs that signal it. */
    struct context_graph graphs[2];
    struct context_check *check;     /* NULL: nodes are not checked */
    struct context_profile *profile; /* or NULL */
    bool use_graph;
    bool stale;         /* bindings changed since pointers were set */
    bool warm;          /* the steps were run with these pointers: kernels are loaded */
    bool queued;        /* runs may be under way that use the pointers */
    bool failed;        /* on the stream: skip the rest of this run */
    atomic_flag busy;   /* a call is inside */
    bool wants_graph;   /* of the whole, and of what is made inside it */
    int visits;         /* which computes itself what is put on the stream; they nest */
    int threads_before; /* of the calling thread's regions, meanwhile */
    bool lost;          /* of the whole: states half changed, by a run that failed */
    bool rehearses;     /* of the whole: the states of its runs are put back */
    bool starts_over;   /* of the whole, set by what measures runs: states past their room
                           are reset and no failure, unless one run alone fills them */
    uint64_t started;   /* of the whole: calls.runs when they were */
    void **counts;      /* of the whole: states that count, after the last run; or NULL */
    bool counted;       /* they are to be looked at */
    int64_t arena_bytes;
    /* Of the next runs: rows, and sizes of the network's symbols; resolved: active is the
     * one for them. */
    int64_t batch, sizes[NETWORK_MAX_SYMBOLS];
    bool resolved;
    struct parts_room *parts;   /* of the whole, for runs of parts; NULL: none yet */
    struct staging *staging;    /* of the whole, for large copies; NULL: none yet */
    struct context_turn turn;   /* of the whole */
    struct context_calls calls; /* of the whole */
    uint64_t uses, used;    /* runs' sizes that were resolved; the last for this one */
    strata_engine *version; /* its engine, where it is its own; or NULL */
    /* For the engine's other sizes, and behind them for versions: their bindings are
     * those of the whole, and their arena where it is large enough; calls enter that
     * alone. active, of the whole, is itself or one of them. */
    strata_context *whole, *active, **smaller;
    size_t n_smaller;
};

/* Beside those of the sizes that the engine is planned for. */
#define CONTEXT_MAX_VERSIONS 16

/* Whether a context that checks makes a constant anew: its weight is still there. */
static inline bool context_makes(const strata_context *c, int node)
{
    return c->engine->parts[node]->weights[0].data != NULL;
}

/* Whether a step puts anything on the stream. Contexts that check have constants of their
 * own. */
static inline bool context_step_acts(const strata_context *c,
                                     const struct execution_step *s)
{
    return s->kind != STEP_RELABEL &&
           (!s->once || (c->check && context_makes(c, s->node)));
}
static inline bool context_step_enqueues(const strata_context *c, size_t step)
{
    return context_step_acts(c, &c->execution->steps[step]);
}

/* Rows of the bindings that the next run of a whole is for; its sizes are resolved. */
static inline int64_t context_rows(const strata_context *c)
{
    const int64_t most = c->active->engine->batch;
    return c->batch < most ? c->batch : most;
}

/* enter.c: every call of the application is between these two; EBUSY if another is
 * inside, EINVAL in the function's name if there is no context. */
int context_enter(strata_context *c, const char *function, strata_error *err);
int context_leave(strata_context *c, int status);
/* context.c: let active be the one for the sizes of the next run, made where it is not
 * there. */
int context_resolve(strata_context *c, strata_error *err);
/* Put a run at the sizes that were resolved on the stream, which moves so many bytes to
 * and from the host in the same call; a run of none with the calling thread computing
 * where it can, until it is complete. */
int context_start(strata_context *c, uint64_t moved, strata_error *err);
int context_run(strata_context *c, strata_error *err);
/* turn.c: around what puts a run on the stream; leave it in any case, with the status
 * until then, which is handed on. No thread waits for a run in it. */
int context_take_turn(strata_context *c, uint64_t moved, strata_error *err);
int context_leave_turn(strata_context *c, int status, strata_error *err);
/* Of a whole, whose stream has nothing under way. */
void context_close_turn(strata_context *c);
/* Whether such a run takes one where nothing else was set. */
bool context_turn_pays(const strata_context *c, uint64_t moved);
/* sizes.c: strata_context_set_batch from inside. */
int context_set_rows(strata_context *c, int64_t rows, strata_error *err);
/* gather.c */
void context_free_parts(strata_context *c);
/* What a call puts on the stream between these two, and then waits for, it computes
 * itself with so many threads if nothing else is under way. */
void context_visit(strata_context *c, int threads);
void context_end_visit(strata_context *c);
/* settle.c: wait for the runs under way, and tell the profiler; gives their failure. */
int context_settle(strata_context *c, strata_error *err);
/* bind.c: give every tensor its address, as the bindings are. */
int context_set_pointers(strata_context *c, strata_error *err);
/* Memory of a binding, of states too: the caller's, or some of our own, made at first
 * need. */
void *context_binding_data(strata_context *c, size_t index, strata_error *err);
/* state.c, of the whole, with no run under way; row: STRATA_ALL_ROWS for all. Copies are
 * put on the stream. */
int context_reset_states(strata_context *c, int64_t row, strata_error *err);
size_t context_states_bytes(strata_context *c, int64_t row);
int context_save_states(strata_context *c, int64_t row, void *data, strata_error *err);
int context_restore_states(strata_context *c, int64_t row, const void *data,
                           strata_error *err);
/* room.c */
/* EINVAL: they were lost. */
int context_states_kept(const strata_context *c, strata_error *err);
/* A run is under way, after which states that count positions are to be looked at. */
void context_note_counts(strata_context *whole);
/* These to memory of the host, on the stream, behind the last run that somebody waits
 * for: between two runs a copy takes time from either. err is not NULL. */
int context_copy_counts(strata_context *c, strata_error *err);
/* Of the whole, once they are there. EOVERFLOW: one counts past its room; told once. */
int context_check_counts(strata_context *whole, strata_error *err);
void context_free_counts(strata_context *whole);
/* run.c: a run begins, and unless that fails it ends, whatever happens between; one step,
 * as it is: nodes are not checked. */
int context_begin(strata_context *c, strata_error *err);
void context_end(strata_context *c);
int context_enqueue_step(strata_context *c, const struct execution_step *step,
                         strata_error *err);
/* steps.c: steps from first to before end; at the first, begin must have been called for
 * the run. *step, if not NULL, is where it failed. */
int context_enqueue_steps(strata_context *c, size_t first, size_t end, size_t *step,
                          strata_error *err);
/* check.c */
bool context_check_wanted(void);
/* Make c->check; close frees it, or what there is of it. */
int context_check_open(strata_context *c, strata_error *err);
void context_check_close(strata_context *c);
/* Memory of the value's owner, zeroed at first. */
void *context_check_value(const strata_context *c, int value);
/* A step, complete and checked on return. EINTERNAL names the node and what it did. */
int context_check_step(strata_context *c, const struct execution_step *step,
                       strata_error *err);
/* graph.c: make graphs[which], as far as its nodes can be captured. Fails only if
 * the device does. */
int context_capture(strata_context *c, int which, strata_error *err);
/* The graph of a segment. *step is where it failed, n_steps if not at any one. */
int context_capture_segment(strata_context *c, struct context_segment *s, size_t *step,
                            strata_error *err);
/* beginnings.c: costs in place to x, the context's execution, in about so much time; none
 * where its runs, which it is prepared for, are not one graph. */
int context_cost_in_place(strata_context *c, struct execution *x, double budget_ms,
                          strata_error *err);
/* Nothing may be under way. */
void context_drop_graphs(strata_context *c);
/* time.c: random inputs, and the graph of all steps; EUNSUPPORTED if there is no one
 * graph. */
int context_prepare_times(strata_context *c, strata_error *err);
/* What runs of two contexts on one stream take: in turns, each for about so long at a
 * time, the one that begins changing from pair to pair. */
struct context_turns {
    double ms[2]; /* of a run: medians */
    double gain;  /* how much less the second takes, of the first: the pairs' median */
};
int context_time_turns(strata_context *const contexts[2], double turn_ms, int pairs,
                       struct context_turns *out, strata_error *err);
/* Sorts them. */
double context_median(double *values, size_t n);
/* profile.c: a run that is watched; `consumed` is the step before which the
 * inputs have been read. */
int context_enqueue_profiled(strata_context *c, size_t consumed,
                             strata_event *input_consumed, strata_error *err);
void context_free_profile(strata_context *c);
/* Watch the context and those inside it; NULL: no longer. */
int context_watch(strata_context *c, const strata_profiler *profiler, strata_error *err);

#endif /* ENGINE_CONTEXT_CONTEXT_H */
