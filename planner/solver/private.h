/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the solver: model.c turns a problem into a sum of functions of one and two
 * unknowns (PBQP); pbqp.c stores it, reduce.c shrinks it, bound.c bounds
 * it, branch.c searches it.
 */
#ifndef PLANNER_SOLVER_PRIVATE_H
#define PLANNER_SOLVER_PRIVATE_H

#include "core/alloc.h"
#include "planner/solver/plan.h"

/* ---- tables of trees (forest.c) ----------------------------------------------- */

/* Trees of one conversion matrix: from every label to every set of wanted labels. Labels
 * that become each other for nothing share a bit of a set; what every label becomes for
 * nothing needs none. Up to FOREST_FEW bits the sets are all that are no larger than
 * there are readers, which is how the checker counts them, too; beyond, those that some
 * choices of the readers want together, and their parts. */
struct plan_forest {
    const int64_t *conversion;
    uint64_t wanted; /* by any choice of any reader */
    int n_slots;
    bool any_free;  /* a wanted label needs no bit */
    bool many;      /* more than one reader: sets matter */
    uint32_t *sets; /* ascending; none where they are too many */
    size_t n_sets;
    bool *whole; /* of each: readers may want just that */
    size_t n_whole;
    int64_t *path;                       /* [from][to] */
    int64_t *tree;                       /* [root][set]; NULL without sets */
    unsigned char slot[PLAN_MAX_LABELS]; /* wanted label -> bit, or FOREST_FREE */
};

enum { FOREST_FEW = 12, FOREST_SLOTS = 31, FOREST_SETS = 8192 };
#define FOREST_FREE 255

struct plan_model;

/* Slots and sets, without the trees; the tensor's. Free it in any case. */
int plan_forest_open(struct plan_forest *f, const struct plan_model *m, int tensor,
                     strata_error *err);
int plan_forest_grow(struct plan_forest *f, const struct plan_problem *p,
                     strata_error *err);
bool plan_forest_same(const struct plan_forest *a, const struct plan_forest *b);
void plan_forest_free(struct plan_forest *f);
/* The set that holds the wanted labels. */
uint32_t plan_forest_set(const struct plan_forest *f, uint64_t wanted);
/* A set's place among the sets, n_sets where it is none of them. */
size_t plan_forest_place(const struct plan_forest *f, uint32_t set);
int64_t plan_forest_cost(const struct plan_forest *f, const struct plan_problem *p,
                         int tensor, int root, uint64_t wanted);

/* ---- a problem under options (model.c) ---------------------------------------- */

struct plan_model {
    struct plan_problem p; /* tensors and labels as the options leave them */
    const struct plan_problem *original;
    int64_t penalty; /* of each reformat, in p's matrices */
    size_t *first;   /* operation -> its first entry in banned and tie */
    bool *banned;
    uint32_t *tie;
    int shift;                   /* costs are searched as cost << shift | tie */
    struct plan_forest **forest; /* of each tensor */
    struct plan_forest *forests; /* the distinct ones */
    size_t n_forests;
    int64_t **matrices;
    size_t n_matrices;
    const bool *member; /* operations that count, or NULL for all (feasibility) */
    bool feasibility;   /* all costs are 0 or infinite, sets are not needed */
};

int plan_model_open(struct plan_model *m, const struct plan_problem *p,
                    const struct plan_options *options, strata_error *err);
void plan_model_close(struct plan_model *m);
/* Of an assignment: exact objective, and with ties as the search sees it. */
int64_t plan_model_cost(const struct plan_model *m, const size_t *choices);
int64_t plan_model_scaled(const struct plan_model *m, const size_t *choices);

/* ---- PBQP (pbqp.c) ------------------------------------------------------------ */

#define PBQP_DEAD (PLAN_INFINITE / 2) /* and above: impossible */

/* Memory that is given back in the reverse order. */
struct arena_chunk {
    struct arena_chunk *next;
    size_t size, used; /* bytes */
};
struct scratch {
    struct arena_chunk *first, *current;
};
struct scratch_mark {
    struct arena_chunk *chunk;
    size_t used;
};

void *scratch_get(struct scratch *s, size_t n, size_t size);
struct scratch_mark scratch_mark(const struct scratch *s);
void scratch_release(struct scratch *s, struct scratch_mark mark);
void scratch_free(struct scratch *s);

struct pbqp_node {
    int n;            /* labels left; 0: eliminated */
    int head, degree; /* first half-edge: 2 * edge + side, or -1 */
    int64_t *cost;
    const int *origin; /* label -> label when built; not changed in place */
    bool is_set;       /* of a tensor's formats: follows from its operations */
    bool dirty;        /* to be looked at by the reductions */
};

struct pbqp_edge {
    int node[2]; /* rows, columns; node[0] = -1: free */
    int next[2], previous[2];
    int64_t *m; /* row-major */
    int level;  /* of the copy that may write m */
};

/* What can be eliminated (queue.c). */
struct pbqp_queue {
    int *heap, *place; /* nodes; a node's index there, or -1 */
    int64_t *work;
    int n;
};

struct pbqp {
    struct pbqp_node *nodes;
    struct pbqp_edge *edges;
    int n_nodes, n_edges;
    int free_from; /* no free edge is below */
    int64_t constant;
    int level;
    bool infeasible;
    struct pbqp_queue *queue; /* kept as nodes and edges change, or NULL */
};

/* How to find an eliminated node's label again once its neighbours have theirs. */
struct pbqp_view {
    int node, n;
    const int *origin;
    const int64_t *m;
    size_t own_stride, other_stride;
};
struct pbqp_eliminated {
    int node, n, n_views;
    const int64_t *cost;
    const int *origin;
    struct pbqp_view view[2];
};

struct pbqp_frame {
    struct pbqp pb;
    struct scratch_mark mark;
    size_t n_eliminated;
    int64_t bound;
    int branch, label; /* what its first half has fixed; branch = -1: none */
};

struct pbqp_search {
    struct scratch scratch;
    struct pbqp_queue queue;
    struct pbqp_eliminated *eliminated;
    size_t n_eliminated, eliminated_capacity;
    struct pbqp_frame *frames;
    size_t n_frames, frames_capacity;
    int64_t best; /* only what is cheaper is looked for */
    int *labels;  /* of the best, as built; valid if found */
    int *trial;
    bool found;
    int64_t bound; /* no assignment is cheaper */
    uint64_t nodes, max_nodes;
    double deadline; /* seconds of the monotonic clock, or 0 */
    bool stopped;
    bool record; /* keep a proof */
    int64_t *proof;
    size_t n_proof, proof_capacity;
    const int *names; /* node -> name in the proof */
    /* An incumbent from outside, asked for when the root's bound yields none. */
    int64_t (*start)(void *context);
    void *context;
    strata_error *err;
};

/* A cell of an edge seen from one side. */
static inline size_t pbqp_stride(const struct pbqp *pb, const struct pbqp_edge *e,
                                 int side)
{
    return side ? 1 : (size_t)pb->nodes[e->node[1]].n;
}
static inline bool pbqp_dead(int64_t cost)
{
    return cost >= PBQP_DEAD;
}

#define PBQP_EACH(pb, half, v)                                                           \
    for (int half = (pb)->nodes[v].head; half >= 0;                                      \
         half = (pb)->edges[half >> 1].next[half & 1])

/* The edge between two nodes, or -1. */
int pbqp_find(const struct pbqp *pb, int u, int v);
/* Add a matrix (kept) between two nodes, onto what is there. */
int pbqp_connect(struct pbqp_search *s, struct pbqp *pb, int u, int v, int64_t *m);
void pbqp_disconnect(struct pbqp *pb, int edge);
int pbqp_writable(struct pbqp_search *s, struct pbqp *pb, int edge);
int pbqp_copy(struct pbqp_search *s, struct pbqp *to, const struct pbqp *from);
/* Take out labels whose cost is infinite. */
int pbqp_compact(struct pbqp_search *s, struct pbqp *pb, int v);
void pbqp_touch(struct pbqp *pb, int v);
/* Have the queue, if there is one, know what eliminating a node now takes. */
void pbqp_requeue(struct pbqp *pb, int v);
int pbqp_record(struct pbqp_search *s, int n, const int64_t *words);

int pbqp_queue_open(struct pbqp_queue *q, int n_nodes, strata_error *err);
void pbqp_queue_close(struct pbqp_queue *q);
void pbqp_queue_clear(struct pbqp_queue *q);
/* Put a node in, move it or, at work below 0, take it out. */
void pbqp_queue_set(struct pbqp_queue *q, int v, int64_t work);
/* The node of the least work, out of the queue; -1: none. */
int pbqp_queue_take(struct pbqp_queue *q);

/* Exact reductions to a fixed point (reduce.c). */
int pbqp_reduce(struct pbqp_search *s, struct pbqp *pb);
/* TRW-S: shifts costs so that the bound is the sum of the nodes' least costs. */
int pbqp_tighten(struct pbqp_search *s, struct pbqp *pb, int sweeps, int64_t *bound);
/* Search from a built problem: best, labels, bound. */
int pbqp_search(struct pbqp_search *s, const struct pbqp *root);
void pbqp_search_close(struct pbqp_search *s);
double plan_seconds(void);

/* ---- the problem as PBQP ----------------------------------------------------------- */

struct plan_graph {
    struct pbqp pb;
    int *node_of_op;
    int *names;
};

int plan_graph_build(struct plan_graph *g, const struct plan_model *m,
                     struct pbqp_search *s);
void plan_graph_close(struct plan_graph *g);
/* Whether some tensor had too many sets: the graph then bounds the problem from below. */
bool plan_graph_is_relaxed(const struct plan_model *m);
/* Whether a tensor's sets are other ones than the checker counts. */
bool plan_graph_is_large(const struct plan_model *m);

/* ---- one run (run.c) ---------------------------------------------------------- */

struct plan_run {
    size_t *choices; /* valid if found */
    bool found, proved;
    int64_t objective, bound;
    uint64_t nodes;
};

/* Search a model for what is cheaper than `limit` (PLAN_INFINITE: anything). */
int plan_run_search(struct plan_run *r, const struct plan_model *m,
                    const struct plan_options *o, int64_t limit, strata_error *err);
/* The plan of a run's choices. */
int plan_from_run(struct plan **out, const struct plan_model *m, const struct plan_run *r,
                  strata_error *err);
/* Whether the members of a model can be given choices at all. */
int plan_is_feasible(bool *feasible, struct plan_model *m, strata_error *err);

/* ---- a good assignment, not proved (start.c) ---------------------------------- */

/* false: none is feasible. */
bool plan_start(const struct plan_model *m, size_t *choices, strata_error *err,
                int *status);

#endif /* PLANNER_SOLVER_PRIVATE_H */
